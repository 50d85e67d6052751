// Package crashstate keeps the state of a mount's process for the next one after a crash. In shared memory,
// it records open files and possible owners of locks as they change. It omits state known to the cluster or
// the kernel.
//
// A record costs a few stores. The process writes it before any program depends on it, and removes it after
// its end. So the crash state may have too much, which can be released twice, but never too little. With too
// many open files or owners of locks, the crash state is useless ([Left].Incomplete), and the mount ends with
// its process.
package crashstate
