package raftstore

import "lockfs/raftstore/storepb"

// DistrustedError is the reason why a node stops: the other nodes found that its state differs from theirs.
type DistrustedError struct{ Alarm *storepb.Alarm }

func (e *DistrustedError) Error() string { return e.Alarm.GetText() }
