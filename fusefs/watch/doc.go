// Package watch has programs learn by inotify(7) that a file which they watch was removed on another host: delete-self, on which
// waiters for a lock rely, and programs such as tail -F.
//
// The removals come from the cluster in a stream of their own, for its events would not do. They tell of what was known to be a
// lock only, and a watched file may be data; they say nothing of inodes, by which the kernel is told; and to ask for them takes a
// round of the leader's, for what is said must be so. Here any node tells what it has seen removed, at once and without asking
// the others, since nobody relies on hearing of all of it.
package watch
