package control

import (
	"fmt"
	"strings"
	"syscall"

	"lockfs/formats/lockfact"
	"lockfs/fusefs/fuseattr"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// why describes all known facts of a lock, in lines "key: value" for people. It omits unknown ones.
func why(lock *storepb.Lock, now int64) snapshot {
	facts, attr := lock.GetFacts(), lock.GetAttr()
	var text strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s: %s\n", key, oneLine(value))
		}
	}
	line("path", string(lock.GetPath()))
	line("lock", lockjson.Whether(lock))
	if lock.GetBecause() != "" {
		line("state", lock.GetState())
		line("reason", lock.GetReason())
		line("since", lockjson.Moment(lock.GetSince(), now))
		line("lives", lockjson.Lives(lock, now))
		line("may be removed by", lockjson.Remover(lock))
		line("format", lockfact.Format(facts.GetFormat()).String())
		line("invalid", facts.GetInvalid())
		line("holder", facts.GetHolder())
		line("host", facts.GetHost())
		line("pid", number(facts.GetPid()))
		line("process", process(facts.GetProcess()))
		line("tag", facts.GetTag())
	}
	line("created by", lockjson.Maker(lock))
	if lock.GetBecause() != "" || lock.GetExclusive() {
		line("token", fmt.Sprint(lock.GetToken()))
		line("acquired", lockjson.Moment(lock.GetAcquired(), now))
	}
	line("issued", lockjson.Moment(facts.GetIssuedAt(), now))
	line("renewed", lockjson.Moment(attr.GetMtime(), now))
	if lock.GetBecause() != "" {
		line("expires", lockjson.Moment(facts.GetExpiresAt(), now))
		line("guard", lockfact.Guard(facts.GetGuard()).String())
		line("on_stale", lockfact.OnStale(facts.GetOnStale()).String())
	}
	line("rule", lock.GetRule())
	line("type", fileType(attr.GetMode()))
	line("mode", fmt.Sprintf("%04o", attr.GetMode()&fuseattr.PermissionBits))
	line("uid", fmt.Sprint(attr.GetUid()))
	line("gid", fmt.Sprint(attr.GetGid()))
	line("inode", fmt.Sprint(attr.GetIno()))
	line("links", fmt.Sprint(attr.GetNlink()))
	line("size", fmt.Sprint(attr.GetSize()))
	held, waiting := 0, 0
	for _, a := range lock.GetAdvisoryLocks() {
		count := &held
		if a.GetPosition() != 0 {
			count = &waiting
		}
		if *count++; *count <= advisoryLines {
			line(advisoryKind(a), advisory(a, now))
		}
	}
	if more := max(0, held-advisoryLines) + max(0, waiting-advisoryLines); more > 0 {
		line("flock and fcntl", fmt.Sprintf("%d more", more))
	}
	return snapshot(text.String())
}

// advisoryLines limits the lines of locks and those of requests, and so the memory of an open file.
const advisoryLines = 100

func advisoryKind(a *storepb.AdvisoryLock) string {
	if a.GetKind() == storepb.LockKind_FLOCK {
		return "flock"
	}
	return fmt.Sprintf("fcntl, bytes %d to %d", a.GetStart(), a.GetEnd())
}

// advisory describes the holder of a lock, or a waiter. Waiters get the lock in the order of their lines.
func advisory(a *storepb.AdvisoryLock, now int64) string {
	kind := "shared"
	if a.GetType() == storepb.LockType_EXCLUSIVE {
		kind = "exclusive"
	}
	what := "held"
	switch {
	case a.GetPosition() != 0:
		what = "waited for"
	case a.GetUntil() != 0:
		what = fmt.Sprintf("kept until %s, because its mount was given up on; held", lockjson.Moment(a.GetUntil(), now))
	}
	return fmt.Sprintf("%s, %s by process %d on host %s since %s", kind, what, a.GetPid(), a.GetHost(), lockjson.Moment(a.GetSince(), now))
}

func process(p *storepb.Process) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%d in pid namespace %d, started %d ticks after boot %s",
		p.GetPid(), p.GetPidNamespace(), p.GetStart(), p.GetBootId())
}

func fileType(mode uint32) string {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return "directory"
	case syscall.S_IFLNK:
		return "symbolic link"
	case syscall.S_IFIFO:
		return "fifo"
	case syscall.S_IFSOCK:
		return "socket"
	}
	return "file"
}
