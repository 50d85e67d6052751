// Package beads is the beads exclusive lock: a JSON file by which a tool claims a database for itself,
// stale when its process is provably dead.
//
// The names and meanings of [ExclusiveLock], [NewExclusiveLock], [ExclusiveLock.Validate],
// [ShouldSkipDatabase] and [IsProcessAlive] are those of the specification's "API Reference"; the rest
// is what other programs that read such files need.
//
//	lock, err := beads.NewExclusiveLock("my-tool", "1.0.0")
//	err = beads.Acquire(ctx, beadsDir, lock)
//	... work on the database ...
//	err = beads.Release(ctx, beadsDir, lock)
//
// In doubt a lock is valid: when it cannot be read, when its process may not be signalled, and when it
// is on another host, of which only a mount of lockfs knows more ([Check]).
package beads
