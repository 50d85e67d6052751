package fusefs

import (
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"google.golang.org/protobuf/proto"

	"lockfs/fusefs/filelock"
	"lockfs/fusefs/observation"
	"lockfs/raftstore/storepb"
)

// fileHandle is one open regular file.
type fileHandle struct {
	inode *inode

	mu      sync.Mutex
	by      []*storepb.Observation // the name it was opened by, as it was then or is since; none if it is not known
	thread  uint32                 // that noted it last, and when
	noted   time.Time
	how     observation.How
	version uint64 // of what was seen on this mount, then

	keepName func(name []byte) // for whoever goes on should this process be killed
	locks    filelock.Description
}

func (h *fileHandle) name() []*storepb.Observation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by
}

// news answers what a thread sees through the handle, unless that was the last thing that anybody saw: to
// find out who the thread is takes some time.
func (h *fileHandle) news(thread uint32, seen []*storepb.Observation, how observation.How, version uint64) []*storepb.Observation {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(seen) == 0 {
		seen = h.by
	}
	now, before := nameOf(seen), nameOf(h.by)
	same := now.GetToken() == before.GetToken() && now.GetEmpty() == before.GetEmpty() && now.GetData() == before.GetData() && how == h.how
	if same && h.thread == thread && h.version == version && time.Since(h.noted) < observation.Age/2 {
		return nil
	}
	h.thread, h.by, h.how, h.noted = thread, seen, how, time.Now()
	if !same {
		h.keepName(packNames(seen))
	}
	return seen
}

func (h *fileHandle) notedAt(version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version = version
}

// made is for a new file that a thread has seen already, as of a version of what was seen on this mount.
func (h *fileHandle) made(thread uint32, seen []*storepb.Observation, version uint64) {
	if len(seen) > 0 {
		h.thread, h.by, h.how, h.noted, h.version = thread, seen, observation.Made, time.Now(), version
	}
}

// saw notes what a thread reads or writes through the handle. Nothing seen now means that the name is
// another file's, so that a reader sees what was there before.
func (h *fileHandle) saw(in *observation.Memory, by fuse.Caller, seen []*storepb.Observation, how observation.How) {
	if !in.IsKept() {
		return
	}
	if seen = h.news(by.Pid, seen, how, in.Version()); len(seen) > 0 {
		h.notedAt(in.Saw(by, seen, how))
	}
}

// packNames makes a text of the names that a file was opened by.
func packNames(by []*storepb.Observation) []byte {
	if len(by) == 0 {
		return nil
	}
	text, _ := proto.Marshal(&storepb.Result{Observations: by}) // it has nothing that could not be
	return text
}
