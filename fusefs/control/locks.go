package control

import (
	"fmt"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/formats/lockfact"
	"lockfs/fusefs/fuseattr"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// locksFile has a line for each lock that its reader could reach and stat. For a lock without read
// permission, it has only age, path and the fact of a lock. It counts as no observation for the guard of a
// removal.
type locksFile string

const (
	plainLocks locksFile = "locks"
	jsonLocks  locksFile = "locks.jsonl" // see [lockjson.Lock]
)

func (locksFile) attr(s *source) (*storepb.Attr, syscall.Errno) { return s.fixed(fileMode), 0 }

func (f locksFile) open(s *source, in *fuse.OpenIn) (handle, syscall.Errno) {
	return &lockList{source: s, file: f, viewer: fuseattr.ViewerOf(&in.InHeader), turn: make(chan struct{}, 1)}, 0
}

func (f locksFile) line(lock *storepb.Lock, now int64) []byte {
	if f == jsonLocks {
		return append(lockjson.LockLine(lock, now), '\n')
	}
	return []byte(lockLine(lock, now))
}

// lockLine returns a line of plainLocks:
//
//	state format token holder host pid age path
//
// One blank separates the fields, and only the last, the path, has blanks. Age is in seconds since the holder
// acquired the lock. "-" is for missing or hidden values. So these work:
//
//	while read -r state format token holder host pid age path; do ...; done < .lockfs/locks
//	awk '$1 == "stale" && $7 > 3600' .lockfs/locks
func lockLine(lock *storepb.Lock, now int64) string {
	facts := lock.GetFacts()
	age := max(0, now-lock.GetAcquired()) / int64(time.Second)
	return fmt.Sprintf("%s %s %s %s %s %s %d %s\n",
		oneWord(lock.GetState()), oneWord(lockfact.Format(facts.GetFormat()).String()), oneWord(number(lock.GetToken())), oneWord(facts.GetHolder()),
		oneWord(facts.GetHost()), oneWord(number(facts.GetPid())), age, oneLine(string(lock.GetPath())))
}

// number returns an empty string for 0.
func number[N uint32 | uint64](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
