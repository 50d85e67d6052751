// Package tower is the tower-fleet lock, version 1: a JSON file with the request that holds it, renewed
// by heartbeats, stale when the last one is older than its time to live, and stolen only when it is
// stale and somebody insists.
//
//	lock, err := tower.New("money-tracker-production", "req_abc123", "deploy-app", "1.2.0", time.Now())
//	content, err := lock.Render()
//	... create <lock name>.lock exclusively, write content ...
//	content, err = tower.Heartbeat(content, time.Now())
//
// [Dir] does all that in a directory, for programs that do not mind which files there are:
//
//	dir := tower.Dir{Path: "/locks/tower", Now: time.Now}
//	asked := time.Now()
//	taken, err := dir.Acquire(lock, false)
//	go func() { lost <- dir.Keep(ctx, taken.Lock, asked, tower.RecommendedInterval(lock.TTLSeconds), warn) }()
//	... work until it is done or lost; end ctx and wait for Keep ...
//	_, err = dir.Release(lock.LockName, lock.RequestID)
//
// Section numbers in this package are the specification's. The pid in a lock is for people to read; by
// section 12.3 nothing is decided by it.
package tower
