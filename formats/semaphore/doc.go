// Package semaphore is the File-Based Semaphore 1.0: key=value lines with the process that holds the
// lock and when it took it, stale by age.
//
//	lock := semaphore.New("deploy-v1.2.3", time.Now())
//	content, err := lock.Render()
//	... create the file exclusively, write content, fsync ...
//
// A last line without its terminator is taken, because programs write such files, unless it could be
// the beginning of a longer one that says something else: see [Parse].
package semaphore
