package page

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// Lock is a row in the list of locks, and an element of /v1/locks. For a hidden lock it has only the path and
// times.
type Lock struct {
	Path     string `json:"path"`              // from the root of the mount
	State    string `json:"state"`             // held, stale, unreachable; hidden: not readable for the viewer; data: not a lock
	Why      string `json:"why,omitempty"`     // reason for the state, or for being a lock
	Format   string `json:"format,omitempty"`  // flock or fcntl, if only those are held
	Holder   string `json:"holder,omitempty"`  // as in its format
	Host     string `json:"host,omitempty"`    // of the holder
	PID      uint32 `json:"pid,omitempty"`     // of the holder
	Token    uint64 `json:"token,omitempty"`   // fencing token
	Acquired moment `json:"acquired,omitzero"` // time of the holder's acquisition
	Expires  moment `json:"expires,omitzero"`  // time of becoming stale without renewal
	Waiters  int    `json:"waiters,omitempty"` // waiters for its flock or fcntl lock
	Invalid  string `json:"invalid,omitempty"` // violated rule of the format
	Creator  uint32 `json:"creator,omitempty"` // pid of the process on Host which created the name, if no holder is known
	Parent   uint64 `json:"-"`                 // key in the cluster, with Name
	Name     string `json:"-"`                 //
}

// States of a lock besides those of lockfact.
const (
	stateHidden = "hidden"
	stateData   = "data"
)

func describe(l *storepb.Lock) Lock {
	f := l.GetFacts()
	d := Lock{
		Path: string(l.GetPath()), State: l.GetState(), Why: l.GetReason(), Holder: f.GetHolder(), Host: f.GetHost(), PID: f.GetPid(),
		Token: l.GetToken(), Acquired: moment(l.GetAcquired()), Expires: moment(f.GetExpiresAt()), Invalid: f.GetInvalid(),
		Parent: l.GetParent(), Name: string(l.GetName()),
	}
	if l.GetState() == "" {
		d.State = stateHidden
		return d
	}
	if d.Holder == "" && d.PID == 0 {
		d.Creator, d.Host = l.GetMadeBy(), cmp.Or(l.GetMadeOn(), d.Host)
	}
	if format := lockfact.Format(f.GetFormat()); format != lockfact.None {
		d.Format = format.String()
	}
	var held *storepb.AdvisoryLock
	for _, a := range l.GetAdvisoryLocks() {
		if a.GetPosition() != 0 {
			d.Waiters++
		} else if held == nil {
			held = a
		}
	}
	switch {
	case l.GetBecause() != "" && d.Why == "":
		d.Why = l.GetBecause()
	case l.GetBecause() == "" && held != nil:
		d.Why, d.Format = "a program holds it with "+kindOf(held), kindOf(held)
		d.Holder, d.Creator, d.Host, d.PID, d.Acquired, d.Expires = "", 0, held.GetHost(), held.GetPid(), moment(held.GetSince()), 0
	case l.GetBecause() == "" && d.Waiters == 0:
		d.State = stateData
	}
	return d
}

func kindOf(a *storepb.AdvisoryLock) string {
	if a.GetKind() == storepb.LockKind_RECORD {
		return "fcntl"
	}
	return "flock"
}

// Key identifies a row across live updates.
func (l Lock) Key() string { return fmt.Sprintf("%d/%s", l.Parent, l.Name) }

// Who returns the holder as a short text; if it is unknown, the process which created the name.
func (l Lock) Who() string {
	pid := fmt.Sprintf("pid %d", l.PID)
	switch {
	case l.PID == 0 && l.Holder == "" && l.Creator != 0:
		return fmt.Sprintf("created by pid %d", l.Creator)
	case l.PID == 0:
		return l.Holder
	case l.Holder == "" || l.Holder == fmt.Sprint(l.PID):
		return pid
	}
	return l.Holder + ", " + pid
}

// Trouble returns the reason why a lock needs attention; empty: it needs none.
func (l Lock) Trouble() string {
	switch {
	case l.State == string(lockfact.Unreachable), l.State == string(lockfact.Stale):
		return l.Why
	case l.Invalid != "":
		return "invalid: " + l.Invalid
	}
	return ""
}

// Dir returns the path of the directory with a slash at its end; empty: the root of the mount.
func (l Lock) Dir() string { return l.Path[:strings.LastIndexByte(l.Path, '/')+1] }

// Base returns the last element of the path.
func (l Lock) Base() string { return l.Path[len(l.Dir()):] }

// Link returns the path of the lock's page.
func (l Lock) Link() string { return "/lock/" + escapePath(l.Path) }

func escapePath(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = url.PathEscape(name)
	}
	return strings.Join(names, "/")
}

// longQueue is the number of waiters which counts as trouble.
const longQueue = 3

// trouble returns the urgency of a lock, the most urgent first.
func (l Lock) trouble() int {
	switch {
	case l.State == string(lockfact.Unreachable):
		return 0
	case l.State == string(lockfact.Stale):
		return 1
	case l.Waiters >= longQueue, l.Invalid != "":
		return 2
	case l.Waiters > 0:
		return 3
	case l.State == stateHidden:
		return 5
	case l.State == stateData:
		return 6
	}
	return 4
}
