package lockjson

import (
	"fmt"
	"strings"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// Whether describes why a name is a lock or is none.
func Whether(lock *storepb.Lock) string {
	switch {
	case lock.GetBecause() != "":
		return "yes: " + lock.GetBecause()
	case len(lock.GetAdvisoryLocks()) > 0:
		return "no: it is data, guarded by its flock and fcntl locks alone"
	case lock.GetExclusive() && lock.GetEvidence() != "":
		return fmt.Sprintf("no: it was created exclusively and %s, which is not evidence enough (lockfs help locks)", lock.GetEvidence())
	case lock.GetExclusive():
		return "no: it was created exclusively, and nothing else says that it is a lock (lockfs help locks)"
	}
	return "no: it is data"
}

// Maker describes the process that created an exclusive name; empty: unknown.
func Maker(lock *storepb.Lock) string {
	switch {
	case lock.GetMadeOn() == "":
		return ""
	case lock.GetMadeBy() == 0:
		return "a process on host " + lock.GetMadeOn()
	}
	return fmt.Sprintf("process %d on host %s", lock.GetMadeBy(), lock.GetMadeOn())
}

// Lives describes how long a lock is held, and its fate afterwards.
func Lives(lock *storepb.Lock, now int64) string {
	facts := lock.GetFacts()
	then := "then it stays until a program removes it"
	if lockfact.OnStale(facts.GetOnStale()) == lockfact.Remove {
		then = "then lockfs removes it"
	}
	byProcess := lock.GetByCreator() ||
		lockfact.Facts{Format: lockfact.Format(facts.GetFormat()), PID: int(facts.GetPid())}.ByProcess()
	switch {
	case lock.GetStaysBecause() != "":
		return "no more; it stays until a program removes it: " + lock.GetStaysBecause()
	case lock.GetState() == string(lockfact.Stale):
		return "no more; " + strings.TrimPrefix(then, "then ")
	case byProcess && facts.GetProcess() == nil:
		return "until a program removes it: its process could not be identified"
	case lock.GetState() == string(lockfact.Unreachable):
		return fmt.Sprintf("until host %[1]s is back and its process is found to be gone, or `lockfs host forget %[1]s`; %[2]s",
			facts.GetHost(), then)
	case byProcess:
		return fmt.Sprintf("as long as process %d on host %s; %s", facts.GetPid(), facts.GetHost(), then)
	case facts.GetExpiresAt() != 0:
		return fmt.Sprintf("until %s if it is not renewed; %s", Moment(facts.GetExpiresAt(), now), then)
	}
	return "until a program removes it"
}

// Remover describes the programs that may remove a lock now, permissions apart.
func Remover(lock *storepb.Lock) string {
	if lock.GetRemover() == "" {
		return "anyone"
	}
	return lock.GetRemover() + ", or anyone with `lockfs rm --force`"
}

// Moment formats a time, with its distance from now; empty for 0.
func Moment(at, now int64) string {
	if at == 0 {
		return ""
	}
	distance := time.Unix(0, now).Sub(time.Unix(0, at)).Round(time.Second)
	if distance < 0 {
		return fmt.Sprintf("%s (in %s)", Timestamp(at), Duration(-distance))
	}
	return fmt.Sprintf("%s (%s ago)", Timestamp(at), Duration(distance))
}

// Timestamp formats a time in nanoseconds with all digits, so that times sort as texts.
func Timestamp(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z07:00")
}
