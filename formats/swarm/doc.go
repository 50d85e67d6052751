// Package swarm is the swarm task lock: a JSON file with the task, the worker that has it, and when that
// ends, if it ever does.
//
//	lock, err := swarm.New("task-001", "worker-0", time.Hour, time.Now())
//	content, err := lock.Render()
//	... create <task>.lock exclusively, write content ...
//
// The owner is a name: whoever removes a lock compares the worker first ([Lock.CheckOwner]).
package swarm
