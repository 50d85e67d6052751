// Package semaphore is the File-Based Semaphore 1.0: key=value lines with the holder's pid and the time of
// the acquisition. A lock becomes stale by age.
//
//	file := semaphore.File{Path: "/run/deploy.lock", Tag: "deploy-v1.2.3"}
//	lock, err := file.Acquire(ctx)
//	... deploy; lock.Renew(ctx) now and then if that takes long ...
//	err = lock.Release(ctx)
//
// [File] implements the specification's "Protocol Operations". [New], [Parse] and [Lock] are for programs
// with lock files of their own.
//
// Parse accepts a last line without terminator, because programs write such files. It refuses one that may be
// the begin of a longer line with another meaning: see [Parse].
package semaphore
