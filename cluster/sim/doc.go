// Package sim simulates a cluster with its mounts in one process. It has tests only.
//
// # What is real
//
// Servers are cluster.Node with all that they do, from the state machine to raft, its log and its snapshots; mounts are session.Client
// with its journal. They run in a bubble of testing/synctest, where time goes on when all wait for it, so that seconds take milliseconds.
//
// # What is simulated
//
// The network (network_test.go): connections with delays, directions that are cut, hosts that stand still, connections that are reset.
// What was sent is lost with its connection only, as with TCP. Disks (disk_test.go): files in memory, writes of the log and of votes that
// take their time, and the power that fails in one: then some of its sectors are there. The wall clocks of servers, which are set and
// drift. All other clocks are one, so clocks that run at different speeds are not simulated for leases. Hosts that stand still do so as far
// as others can see, and hear nothing; their own timers go on.
//
// # What is required
//
// Players (player_test.go) do through each mount what programs with locks might, while the world is harmed (harm_test.go). For each
// directory there has to be an order in which all that they saw can have happened (package test/history). What had been given up before
// a mount has something else done, or tells what is in the directory, or its successor begins, has no effect after that.
// Lockers (locker_test.go) do the same with locks of open file descriptions, in worlds of their own: nobody has a lock that excludes another one's, is
// refused one without a reason, or is told of one that is not there, and in the end none is left.
// All servers have the same state in the end, none
// stops by itself, and each starts again with what was on its disk. No session is ended while its mount may rely on it. Tokens of a name
// never fall. When nothing is broken any more, all mounts work again.
//
// # Seeds
//
// A seed decides on what is played, which harm is done when, and on delays. The order of goroutines that could run at the same time is
// the scheduler's, so worlds of one seed are alike, and not the same. exact.sh has the program built in such a way that they are the same
// (TESTING.md).
package sim
