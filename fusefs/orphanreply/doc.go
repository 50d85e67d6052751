// Package orphanreply encodes answers to the kernel which can outlive their process. An answer reports a
// success: its thread, its time, and the bytes for /dev/fuse. Normally go-fuse writes the bytes. After a
// crash, another process does ([Finish]). The descriptor of an open is then unusable, but the program knows
// of the new name.
package orphanreply
