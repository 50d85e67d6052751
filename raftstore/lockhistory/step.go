package lockhistory

import (
	"fmt"
	"path"
	"strings"
	"time"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// Step is one thing that happened: an event, or a call.
type Step struct {
	Event *storepb.Event `json:"-"`
	Call  *lockjson.Call `json:"-"`
}

// Time is when it happened, or began.
func (s *Step) Time() time.Time {
	if s.Call != nil {
		return s.Call.Begin
	}
	return time.Unix(0, since(s.Event)).UTC()
}

// since is when what an event tells of came to be, which for an acquisition can be a second before.
func since(e *storepb.Event) int64 {
	if e.GetAcquired() != 0 {
		return e.GetAcquired()
	}
	return e.GetTime()
}

// String is the step in one line, without its time.
func (s *Step) String() string {
	if s.Call != nil {
		return describeCall(s.Call)
	}
	return describeEvent(s.Event)
}

func describeEvent(e *storepb.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "event %d: %s", e.GetNumber(), e.GetEvent())
	if e.GetToken() != 0 {
		fmt.Fprintf(&b, ", token %d, %s", e.GetToken(), holderOf(e))
	}
	if before := e.GetPrevious(); before != nil {
		fmt.Fprintf(&b, ", from token %d, %s", before.GetToken(), holderOf(before))
	}
	if by := e.GetBy(); by != nil {
		fmt.Fprintf(&b, ", by uid %d on %s", by.GetUid(), by.GetHost())
		if by.GetPid() != 0 {
			fmt.Fprintf(&b, " (pid %d)", by.GetPid())
		}
	}
	if e.GetReason() != "" {
		fmt.Fprintf(&b, ": %s", e.GetReason())
	}
	return b.String()
}

// holderOf says who has a lock as far as an event tells.
func holderOf(e *storepb.Event) string {
	who := e.GetFormat()
	if e.GetHolder() != "" {
		who += " " + e.GetHolder()
	}
	if e.GetPid() != 0 && e.GetHolder() != fmt.Sprint(e.GetPid()) {
		who += fmt.Sprintf(" (pid %d)", e.GetPid())
	}
	if e.GetHost() != "" {
		who += " on " + e.GetHost()
	}
	return who
}

func describeCall(c *lockjson.Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "call of pid %d, uid %d on %s: %s", c.PID, c.UID, c.Host, c.Call)
	switch {
	case c.ToName != "":
		fmt.Fprintf(&b, " %q to %q", c.Name, c.ToName)
	case c.Name != "":
		fmt.Fprintf(&b, " %q", c.Name)
	case c.Inode != 0:
		kind := "exclusive"
		if c.Shared {
			kind = "shared"
		}
		if c.Call == lockjson.CallLock {
			fmt.Fprintf(&b, " %s", kind)
		}
		fmt.Fprintf(&b, " inode %d, bytes %d to %d, %s", c.Inode, c.Start, c.Last, c.Owner)
	}
	if c.Error != "" {
		fmt.Fprintf(&b, ": %s", c.Error)
	} else if c.Index != 0 {
		fmt.Fprintf(&b, ", done by command %d", c.Index)
	} else {
		b.WriteString(", told that it is done")
	}
	fmt.Fprintf(&b, " after %v", time.Duration(c.BootEnd-c.BootBegin))
	return b.String()
}

// place is a name in a directory.
type place struct {
	directory uint64
	name      string
}

func placeOf(e *storepb.Event) place { return place{e.GetParent(), path.Base(string(e.GetPath()))} }

// isOfLock tells whether an event is about a name.
func isOfLock(e *storepb.Event) bool {
	return len(e.GetPath()) > 0 && e.GetEvent() != "locked_file_removed" // which is about a file with kernel locks
}
