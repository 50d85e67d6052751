// Package process identifies the processes of this host, to tie a lock to its holder. It returns the process
// of a thread, the process of a pid in a file, its ancestors, and its end. All pids are in the pid namespace
// of this process, and /proc has to belong to that namespace.
//
// The package caches facts about a process while its pidfd reports it alive (procTable).
package process
