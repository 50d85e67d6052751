// Package semaphore is the File-Based Semaphore 1.0: key=value lines with the process that holds the
// lock and when it took it, stale by age.
//
//	file := semaphore.File{Path: "/run/deploy.lock", Tag: "deploy-v1.2.3"}
//	lock, err := file.Acquire(ctx)
//	... deploy; lock.Renew(ctx) now and then if that takes long ...
//	err = lock.Release(ctx)
//
// [File] does what the specification's "Protocol Operations" do. [New], [Parse] and [Lock] are for programs that keep
// the files themselves.
//
// A last line without its terminator is taken, because programs write such files, unless it could be
// the beginning of a longer one that says something else: see [Parse].
package semaphore
