package raftstore

import "lockfs/raftstore/storepb"

// DistrustedError is why a node does nothing more: the others have found that its state is another one than theirs.
type DistrustedError struct{ Alarm *storepb.Alarm }

func (e *DistrustedError) Error() string { return e.Alarm.GetText() }
