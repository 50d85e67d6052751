// Package faultinjection does harm to a cluster, several things at a time, on a schedule that follows from a seed.
//
// A [Schedule] is made of strikes ([Strike]): what is done, when, for how long, and to whom, by role, for who leads is known only
// then. It is a pure function of its [Size]. A [Site] is a cluster of servers and guests on which a schedule is carried out
// ([Site.Run]): no two strikes take hold of the same part of a host (its daemon, its network, its disk, its clock), all else may
// come together. What finds nobody free is left out.
//
// A site keeps what is there running: a daemon that ended by itself is started again, and is an error unless its disk is to blame.
// It counts which strike came at which moment ([Coverage]): while there was no leader, or a snapshot was taken, or a lock was waited
// for, or during another strike.
//
// A test calls history.Main, baddisk.Main and testcluster.Main in its TestMain.
package faultinjection
