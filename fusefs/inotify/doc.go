// Package inotify notifies programs with inotify(7) watches when another host removes a watched file. They
// get delete-self, as waiters for a lock and programs such as tail -F expect.
//
// The removals come in their own stream from the cluster. The events do not suffice: they cover only known
// locks, have no inode numbers for the kernel, and need a quorum round of the leader. In the stream, each
// node reports the removals it has seen, at once and without a quorum, as no program relies on its
// completeness.
package inotify
