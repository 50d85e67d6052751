// Package beads is the beads exclusive lock: a JSON file by which a tool claims a database. It is stale when
// its process is provably dead.
//
// [ExclusiveLock], [NewExclusiveLock], [ExclusiveLock.Validate], [ShouldSkipDatabase] and [IsProcessAlive]
// have the names and meanings of the specification's "API Reference". The rest is for other readers of such
// files.
//
//	lock, err := beads.NewExclusiveLock("my-tool", "1.0.0")
//	err = beads.Acquire(ctx, beadsDir, lock)
//	... work on the database ...
//	err = beads.Release(ctx, beadsDir, lock)
//
// In doubt a lock is valid: if it is unreadable, if this user may not signal its process, or if it is on
// another host. Only a lockfs mount knows the processes of other hosts ([Check]).
package beads
