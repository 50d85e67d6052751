// Package swarm is the swarm task lock: a JSON file with the task, its worker, and an optional expiry.
//
//	dir := swarm.DefaultDir()
//	lock, err := dir.Acquire(ctx, "task-001", "worker-0", time.Hour)
//	... do the task ...
//	err = dir.Release(ctx, "task-001", "worker-0")
//
// [Dir] does the same as the specification's script. [New], [Parse] and [Lock] are for programs with lock
// files of their own. The owner is a name: before a removal, a program compares the worker
// ([Lock.CheckOwner]).
package swarm
