package fusefs

import (
	"fmt"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// statusFile tells what the mount knows of itself, in lines key=value.
type statusFile struct{}

func (statusFile) attr(c *control) (*storepb.Attr, syscall.Errno) { return c.fixed(controlFileMode), 0 }

func (statusFile) open(c *control, _ *fuse.OpenIn) (controlHandle, syscall.Errno) {
	s := c.files.ops.Status()
	return snapshot(fmt.Sprintf("host=%s\nsession=%016x\nleader=%s\nclock_offset=%+.9f\ncluster_time=%s\n",
		oneLine(s.GetHost()), s.GetSession(), oneLine(s.GetLeader()),
		time.Duration(s.GetClockOffset()).Seconds(), timestamp(s.GetClusterTime()))), 0
}
