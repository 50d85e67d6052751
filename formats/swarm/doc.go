// Package swarm is the swarm task lock: a JSON file with the task, the worker that has it, and when that
// ends, if it ever does.
//
//	dir := swarm.DefaultDir()
//	lock, err := dir.Acquire(ctx, "task-001", "worker-0", time.Hour)
//	... do the task ...
//	err = dir.Release(ctx, "task-001", "worker-0")
//
// [Dir] does what the specification's script does. [New], [Parse] and [Lock] are for programs that keep the
// files themselves. The owner is a name: whoever removes a lock compares the worker first ([Lock.CheckOwner]).
package swarm
