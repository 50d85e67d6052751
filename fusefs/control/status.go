package control

import (
	"fmt"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// statusFile has the mount's own status, in lines key=value.
type statusFile struct{}

func (statusFile) attr(s *source) (*storepb.Attr, syscall.Errno) { return s.fixed(fileMode), 0 }

func (statusFile) open(s *source, _ *fuse.OpenIn) (handle, syscall.Errno) {
	known := s.cluster.Status()
	return snapshot(fmt.Sprintf("host=%s\nsession=%016x\nleader=%s\nclock_offset=%+.9f\ncluster_time=%s\n",
		oneLine(known.GetHost()), known.GetSession(), oneLine(known.GetLeader()),
		time.Duration(known.GetClockOffset()).Seconds(), lockjson.Timestamp(known.GetClusterTime()))), 0
}
