package control

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/fusefs/kernel"
	"lockfs/raftstore/storepb"
)

// why tells everything that is known of a lock, in lines "key: value" for people. What is not known has no
// line.
func why(lock *storepb.Lock, now int64) snapshot {
	facts, attr := lock.GetFacts(), lock.GetAttr()
	var text strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s: %s\n", key, oneLine(value))
		}
	}
	line("path", string(lock.GetPath()))
	line("lock", whether(lock))
	line("state", lock.GetState())
	line("reason", lock.GetReason())
	line("since", moment(lock.GetSince(), now))
	line("lives", lives(lock, now))
	line("may be removed by", remover(lock))
	line("format", lockfact.Format(facts.GetFormat()).String())
	line("invalid", facts.GetInvalid())
	line("holder", facts.GetHolder())
	line("host", facts.GetHost())
	line("pid", number(facts.GetPid()))
	line("process", process(facts.GetProcess()))
	line("tag", facts.GetTag())
	line("token", fmt.Sprint(lock.GetToken()))
	line("acquired", moment(lock.GetAcquired(), now))
	line("issued", moment(facts.GetIssuedAt(), now))
	line("renewed", moment(attr.GetMtime(), now))
	line("expires", moment(facts.GetExpiresAt(), now))
	line("guard", lockfact.Guard(facts.GetGuard()).String())
	line("on_stale", lockfact.OnStale(facts.GetOnStale()).String())
	line("rule", lock.GetRule())
	line("type", fileType(attr.GetMode()))
	line("mode", fmt.Sprintf("%04o", attr.GetMode()&kernel.PermissionBits))
	line("uid", fmt.Sprint(attr.GetUid()))
	line("gid", fmt.Sprint(attr.GetGid()))
	line("inode", fmt.Sprint(attr.GetIno()))
	line("links", fmt.Sprint(attr.GetNlink()))
	line("size", fmt.Sprint(attr.GetSize()))
	for _, a := range lock.GetAdvisoryLocks() {
		line(advisoryKind(a), advisory(a, now))
	}
	return snapshot(text.String())
}

func advisoryKind(a *storepb.AdvisoryLock) string {
	if a.GetKind() == storepb.LockKind_FLOCK {
		return "flock"
	}
	return fmt.Sprintf("fcntl, bytes %d to %d", a.GetStart(), a.GetEnd())
}

// advisory says who holds a lock, or waits for one; those who wait are served in the order of their lines.
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
		what = fmt.Sprintf("kept until %s, because its mount was given up on; held", moment(a.GetUntil(), now))
	}
	return fmt.Sprintf("%s, %s by process %d on host %s since %s", kind, what, a.GetPid(), a.GetHost(), moment(a.GetSince(), now))
}

// moment shows a time, and how far it is from now; nothing for 0.
func moment(at, now int64) string {
	if at == 0 {
		return ""
	}
	distance := time.Unix(0, now).Sub(time.Unix(0, at)).Round(time.Second)
	if distance < 0 {
		return fmt.Sprintf("%s (in %v)", Timestamp(at), -distance)
	}
	return fmt.Sprintf("%s (%v ago)", Timestamp(at), distance)
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

// lives says until when a lock is held, and what becomes of it then.
func lives(lock *storepb.Lock, now int64) string {
	facts := lock.GetFacts()
	then := "then it stays until somebody removes it"
	if lockfact.OnStale(facts.GetOnStale()) == lockfact.Remove {
		then = "then lockfs removes it"
	}
	byProcess := lock.GetByCreator() ||
		lockfact.Facts{Format: lockfact.Format(facts.GetFormat()), PID: int(facts.GetPid())}.ByProcess()
	switch {
	case lock.GetState() == string(lockfact.Stale):
		return "no more; " + strings.TrimPrefix(then, "then ")
	case byProcess && facts.GetProcess() == nil:
		return "until somebody removes it: its process could not be identified"
	case lock.GetState() == string(lockfact.Unreachable):
		return fmt.Sprintf("until host %[1]s is back and its process is found to be gone, or `lockfs host forget %[1]s`; %[2]s",
			facts.GetHost(), then)
	case byProcess:
		return fmt.Sprintf("as long as process %d on host %s; %s", facts.GetPid(), facts.GetHost(), then)
	case facts.GetExpiresAt() != 0:
		return fmt.Sprintf("until %s if it is not renewed; %s", moment(facts.GetExpiresAt(), now), then)
	}
	return "until somebody removes it"
}

// remover says who may remove a lock as it is now, permissions apart.
func remover(lock *storepb.Lock) string {
	if lock.GetRemover() == "" {
		return "anyone"
	}
	return lock.GetRemover() + ", or anyone with `lockfs rm --force`"
}

// whether says what makes a name a lock, or what it is instead.
func whether(lock *storepb.Lock) string {
	switch {
	case lock.GetBecause() != "":
		return "yes: " + lock.GetBecause()
	case len(lock.GetAdvisoryLocks()) > 0:
		return "no: it is data, guarded by its flock and fcntl locks alone"
	}
	return "no: it is data"
}
