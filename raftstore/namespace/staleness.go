package namespace

import (
	"fmt"
	"time"

	"lockfs/raftstore/storepb"
)

// staleness is the reason why a lock is stale. It is never modified.
type staleness struct {
	reason    string
	since     int64
	byTime    bool // else its process or its host is gone
	ofCreator bool // the process is the creator of the name
	byCrash   bool // by a signal or the end of the host; else by an exit or an unknown end
}

// withoutCreator returns the staleness of a lock whose name has another creator now.
func (s *staleness) withoutCreator() *staleness {
	if s != nil && s.ofCreator {
		return nil
	}
	return s
}

// end is the end of a process. The zero end is of an unknown kind.
type end struct {
	how    storepb.EndKind
	number uint32 // exit status or signal
}

func endFrom(m *storepb.ProcessEnd) end { return end{m.GetKind(), m.GetNumber()} }

// byCrash reports whether the process did not end by itself. A lock left behind may have to stay as a marker,
// or for another program. A crashed holder left nothing on purpose.
func (e end) byCrash() bool { return e.how == storepb.EndKind_END_SIGNAL }

func (e end) reason(pid uint32, host string) string {
	switch e.how {
	case storepb.EndKind_END_SIGNAL:
		return fmt.Sprintf("its process %d on %s was ended by signal %d", pid, host, e.number)
	case storepb.EndKind_END_EXIT:
		return fmt.Sprintf("its process %d on %s exited with status %d", pid, host, e.number)
	}
	return fmt.Sprintf("its process %d on %s is gone", pid, host)
}

func timestamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
