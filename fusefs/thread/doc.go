// Package thread tells of the threads that make requests what the kernel does not say with them, and what the mount remembers of each
// from one request of a system call to the next: whether it was killed while it waits, and in which system call it is.
//
// A thread is a number, that of the pid namespace of this process; 0 is one that cannot be seen from here.
package thread
