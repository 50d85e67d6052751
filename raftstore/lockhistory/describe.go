package lockhistory

import (
	"fmt"
	"path"
	"strings"
	"time"

	"lockfs/raftstore/storepb"
)

// Time returns the time of an event. For an acquisition it is up to a second before the event.
func Time(e *storepb.Event) time.Time { return time.Unix(0, since(e)).UTC() }

// since returns the time of an event, or of an acquisition before it.
func since(e *storepb.Event) int64 {
	if e.GetAcquired() != 0 {
		return e.GetAcquired()
	}
	return e.GetTime()
}

// Describe returns an event in one line, without its time.
func Describe(e *storepb.Event) string {
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

// place is a name in a directory.
type place struct {
	directory uint64
	name      string
}

func placeOf(e *storepb.Event) place { return place{e.GetParent(), path.Base(string(e.GetPath()))} }

// isOfLock reports whether an event is about a name.
func isOfLock(e *storepb.Event) bool {
	return len(e.GetPath()) > 0 && e.GetEvent() != "locked_file_removed" // about a file with kernel locks
}
