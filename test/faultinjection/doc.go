// Package faultinjection injects faults into a cluster, several at a time, on a schedule that follows from a
// seed.
//
// A [Schedule] has strikes ([Strike]): kind, time, duration, and target by role, because the leader is known
// only at run time. It is a pure function of its [Size]. A [Site] is a cluster of servers and guests that
// runs a schedule ([Site.Run]). Two strikes never share the same part of a host (daemon, network, disk,
// clock); everything else may overlap. A strike without a free target is left out.
//
// A site restarts a daemon that ended by itself. This is an error unless its disk is at fault. It counts the
// moment of each strike ([Coverage]): without a leader, during a snapshot, during a wait for a lock, or
// during another strike.
//
// TestMain must call history.Main, baddisk.Main and testcluster.Main.
package faultinjection
