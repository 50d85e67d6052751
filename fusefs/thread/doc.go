// Package thread finds facts about calling threads which requests do not carry: whether a thread was killed,
// and its system call. It also keeps notes of a thread between the requests of one system call.
//
// A thread is a number in the pid namespace of this process; 0 is an invisible thread.
package thread
