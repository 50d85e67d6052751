// Package process identifies the processes of this host, so that a lock can be tied to the one that holds
// it: which one a thread belongs to, which one a pid in a file means, who its ancestors are, and when it
// ends. All of it is said in the pid namespace of this process, and /proc has to be that namespace's.
//
// What was read of a process is remembered for as long as a pidfd says that it lives (records).
package process
