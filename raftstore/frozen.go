package raftstore

import (
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// DistrustedError is why a node does nothing more: the others have found that its state is another one than theirs.
type DistrustedError struct{ Alarm *storepb.Alarm }

func (e *DistrustedError) Error() string { return e.Alarm.GetText() }

// freeze keeps the state as it is now for whoever receives it, in place of an earlier one; the caller holds the lock.
func (f *FSM) freeze() {
	select {
	case <-f.frozen:
	default:
	}
	f.frozen <- f.ns.Snapshot()
}

// Frozen delivers the state as it was after the last command FreezeState.
func (f *FSM) Frozen() <-chan *namespace.Snapshot { return f.frozen }
