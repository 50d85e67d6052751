// Package sim simulates a cluster with its mounts in one process. It has only tests.
//
// # Real parts
//
// Servers are complete cluster.Nodes with state machine, raft, log and snapshots. Mounts are session.Clients
// with their journals. They run in a bubble of testing/synctest: time advances when all goroutines wait, so
// seconds take milliseconds.
//
// # Simulated parts
//
// The network (network_test.go) has delays, cut directions, paused hosts and reset connections. As with TCP,
// data gets lost only with its connection. Disks (disk_test.go) are files in memory with slow writes of the
// log and of votes. A power failure during a write keeps some of its sectors. The wall clocks of servers are
// set and drift. All other clocks are one, so leases under clocks of different speed are not simulated. A
// paused host neither sends nor receives; its own timers go on.
//
// # Properties
//
// Players (player_test.go) use each mount like programs with locks, under injected faults (harm_test.go). For
// each directory an order must exist that explains all results (package test/history). An abandoned call has
// no effect after the mount has begun another change, has answered a query of the directory, or has a
// successor.
//
// Lockers (locker_test.go) do the same with locks of open file descriptions, in runs of their own. No two
// locks that exclude each other are held at once. A refusal has a reason, a reported lock exists, and at the
// end no lock is left.
//
// At the end all servers have the same state. No server stops by itself, and each starts again from its disk.
// No session ends while its mount may rely on it. The tokens of a name never fall. After the last fault, all
// mounts work again.
//
// # Seeds
//
// A seed decides the calls of the players, the faults and their times, and delays. The scheduler decides the
// order of goroutines that are ready at the same time, so runs of one seed are similar but not equal.
// exact.sh builds the program so that they are equal (TESTING.md).
package sim
