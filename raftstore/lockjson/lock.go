package lockjson

import (
	"fmt"
	"math"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// StateExclusive is the state of an exclusive name without a lock. Only `lockfs locks PATH` shows such names.
const StateExclusive = "exclusive"

// Lock is a lock in JSON: in the output of `lockfs locks --json`, and a line of .lockfs/locks.jsonl. A user
// without read permission gets only the path and the age.
type Lock struct {
	Path     string     `json:"path"`  // from the root of the mount; empty: the file was removed
	State    string     `json:"state"` // held, stale, unreachable, exclusive
	Reason   string     `json:"reason,omitempty"`
	Invalid  string     `json:"invalid,omitempty"` // rule of its format that the content breaks
	Format   string     `json:"format"`
	Holder   string     `json:"holder,omitempty"`
	Host     string     `json:"host,omitempty"`
	PID      uint32     `json:"pid,omitempty"`
	Token    uint64     `json:"token,omitempty"`
	Age      float64    `json:"age_seconds"`       // since its holder got the name
	Expires  *time.Time `json:"expires,omitempty"` // cluster time of the expiry, unless renewed; absent: none
	Waiting  int        `json:"waiting,omitempty"` // requests for its flock and fcntl locks that wait
	Advisory []Advisory `json:"advisory_locks,omitempty"`
}

// Advisory is a lock of flock(2) or fcntl(2), or a request for one. Requests wait in this order.
type Advisory struct {
	Kind    string  `json:"kind"` // flock, fcntl
	Type    string  `json:"type"` // shared, exclusive
	State   string  `json:"state"`
	Host    string  `json:"host"`
	PID     uint32  `json:"pid"`
	Start   uint64  `json:"start"`
	End     uint64  `json:"end"` // last byte
	Age     float64 `json:"age_seconds"`
	Session string  `json:"session"` // hexadecimal
}

// The states of an advisory lock. An interrupted request keeps its place for a moment. A delayed lock is of
// an expired session.
const (
	AdvisoryHeld        = "held"
	AdvisoryWaiting     = "waiting"
	AdvisoryInterrupted = "interrupted"
	AdvisoryDelayed     = "delayed"
)

// DescribeLock converts a lock to its JSON form at a time (nanoseconds since the Unix epoch).
func DescribeLock(l *storepb.Lock, now int64) Lock {
	f := l.GetFacts()
	described := Lock{
		Path: string(l.GetPath()), State: l.GetState(), Reason: l.GetReason(), Format: lockfact.Format(f.GetFormat()).String(), Holder: f.GetHolder(),
		Host: f.GetHost(), PID: f.GetPid(), Token: l.GetToken(), Age: age(l.GetAcquired(), now), Invalid: f.GetInvalid(),
	}
	if l.GetExclusive() && l.GetBecause() == "" && len(l.GetAdvisoryLocks()) == 0 {
		described.State = StateExclusive
	}
	if l.GetBecause() == "" && len(l.GetAdvisoryLocks()) > 0 { // data: only programs with its flock and fcntl locks hold it
		described.Holder, described.Host, described.PID = "", "", 0
	}
	if expires := f.GetExpiresAt(); expires != 0 && l.GetState() != "" {
		at := time.Unix(0, expires).UTC()
		described.Expires = &at
	}
	for _, a := range l.GetAdvisoryLocks() {
		described.Advisory = append(described.Advisory, DescribeAdvisory(a, now))
		if a.GetPosition() != 0 || a.GetInterrupted() != 0 {
			described.Waiting++
		}
	}
	return described
}

// DescribeAdvisory converts a lock of flock(2) or fcntl(2).
func DescribeAdvisory(a *storepb.AdvisoryLock, now int64) Advisory {
	described := Advisory{
		Kind: "flock", Type: "shared", State: AdvisoryHeld, Host: a.GetHost(), PID: a.GetPid(), Start: a.GetStart(), End: a.GetEnd(),
		Age: age(a.GetSince(), now), Session: fmt.Sprintf("%016x", a.GetSession()),
	}
	if a.GetKind() == storepb.LockKind_RECORD {
		described.Kind = "fcntl"
	}
	if a.GetType() == storepb.LockType_EXCLUSIVE {
		described.Type = "exclusive"
	}
	switch {
	case a.GetInterrupted() != 0:
		described.State = AdvisoryInterrupted
	case a.GetPosition() != 0:
		described.State = AdvisoryWaiting
	case a.GetUntil() != 0:
		described.State = AdvisoryDelayed
	}
	return described
}

// age returns whole seconds, and never a negative number, since clocks differ.
func age(since, now int64) float64 { return math.Floor(max(0, time.Duration(now-since).Seconds())) }

// LockLine returns a lock as a line of JSON, without its newline, like EventLine.
func LockLine(l *storepb.Lock, now int64) []byte { return jsonLine(DescribeLock(l, now)) }
