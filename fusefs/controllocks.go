package fusefs

import (
	"fmt"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// locksFile has a line for each lock:
//
//	state format token holder host pid age path
//
// The fields are separated by one blank and have none, but for the path, which is last. Age is in seconds
// since the holder got the name. "-" stands for what there is not. So these work:
//
//	while read -r state format token holder host pid age path; do ...; done < .lockfs/locks
//	awk '$1 == "stale" && $7 > 3600' .lockfs/locks
//
// It is not a look: a removal is not held to what a process saw here.
type locksFile struct{}

func (locksFile) attr(c *control) (*storepb.Attr, syscall.Errno) { return c.fixed(controlFileMode), 0 }

// open takes the locks in pages, which can be of different moments.
func (locksFile) open(c *control, _ *fuse.OpenIn) (controlHandle, syscall.Errno) {
	var lines snapshot
	now := c.files.ops.Status().GetClusterTime()
	next := &storepb.ListLocks{}
	for {
		result, errno := c.files.query(anybody, &storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: next}})
		if errno != 0 {
			return nil, errno
		}
		page := result.GetLocks()
		if len(page) == 0 {
			return lines, 0
		}
		for _, lock := range page {
			lines = append(lines, lockLine(lock, now)...)
		}
		last := page[len(page)-1]
		next = &storepb.ListLocks{AfterParent: last.GetParent(), AfterName: last.GetName()}
	}
}

func lockLine(lock *storepb.Lock, now int64) string {
	facts := lock.GetFacts()
	age := max(0, now-lock.GetAcquired()) / int64(time.Second)
	return fmt.Sprintf("%s %s %d %s %s %s %d %s\n",
		lock.GetState(), facts.GetFormat(), lock.GetToken(), oneWord(facts.GetHolder()), oneWord(facts.GetHost()),
		oneWord(number(facts.GetPid())), age, oneLine(string(lock.GetPath())))
}

// number is empty for 0.
func number(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
