package fusefs

import (
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"google.golang.org/protobuf/proto"

	"lockfs/fusefs/filelock"
	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/storepb"
)

// fileHandle is one open regular file.
type fileHandle struct {
	inode *inode

	mu      sync.Mutex
	by      []*storepb.Observation // its name at the open or since; none: unknown
	thread  uint32                 // of the last observation
	noted   time.Time
	how     lookguard.How
	version uint64 // of the observations at that time

	keepName func(name []byte) // for TakeOver after a crash
	locks    filelock.Description
}

func (h *fileHandle) name() []*storepb.Observation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by
}

// news returns a thread's new observations through the handle, or nil if they equal the last ones: finding
// the thread's process takes time.
func (h *fileHandle) news(thread uint32, seen []*storepb.Observation, how lookguard.How, version uint64) []*storepb.Observation {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(seen) == 0 {
		seen = h.by
	}
	now, before := nameOf(seen), nameOf(h.by)
	same := now.GetToken() == before.GetToken() && now.GetEmpty() == before.GetEmpty() && now.GetData() == before.GetData() && how == h.how
	if same && h.thread == thread && h.version == version && time.Since(h.noted) < lookguard.Age/2 {
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

// made records a new file, already observed by its thread, as of a version of the observations.
func (h *fileHandle) made(thread uint32, seen []*storepb.Observation, version uint64) {
	if len(seen) > 0 {
		h.thread, h.by, h.how, h.noted, h.version = thread, seen, lookguard.Made, time.Now(), version
	}
}

// saw records a thread's observations through the handle. Without observations now, the name belongs to
// another file, and the reader sees the earlier one.
func (h *fileHandle) saw(in *lookguard.Memory, by fuse.Caller, seen []*storepb.Observation, how lookguard.How) {
	if !in.IsKept() {
		return
	}
	if seen = h.news(by.Pid, seen, how, in.Version()); len(seen) > 0 {
		h.notedAt(in.Saw(by, seen, how))
	}
}

// packNames encodes the names by which a file was opened.
func packNames(by []*storepb.Observation) []byte {
	if len(by) == 0 {
		return nil
	}
	text, _ := proto.Marshal(&storepb.Result{Observations: by}) // its fields always encode
	return text
}
