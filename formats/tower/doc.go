// Package tower is the tower-fleet lock, version 1: a JSON file with the request holding it, renewed by
// heartbeats. It is stale when the last heartbeat is older than its time to live. Only a stale lock can be
// stolen, with force.
//
//	lock, err := tower.New("money-tracker-production", "req_abc123", "deploy-app", "1.2.0", time.Now())
//	content, err := lock.Render()
//	... create <lock name>.lock exclusively, write content ...
//	content, err = tower.Heartbeat(content, time.Now())
//
// [Dir] does all this in a directory, for programs without lock files of their own:
//
//	dir := tower.Dir{Path: "/locks/tower", Now: time.Now}
//	asked := time.Now()
//	taken, err := dir.Acquire(lock, false)
//	go func() { lost <- dir.Keep(ctx, taken.Lock, asked, tower.RecommendedInterval(lock.TTLSeconds), warn) }()
//	... work until it is done or lost; end ctx and wait for Keep ...
//	_, err = dir.Release(lock.LockName, lock.RequestID)
//
// Section numbers are those of the specification. The pid in a lock is for readers; it decides nothing
// (section 12.3).
package tower
