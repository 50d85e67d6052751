// Package answer makes answers to the kernel that outlive the process they are from. An answer tells of a success: whom it was
// for and since when, and the bytes as they are written to /dev/fuse. go-fuse writes them in the ordinary course; an answer is
// for whoever has to do it in place of a process that was killed ([Finish]). The descriptor that an open yields then is of no
// use, but its maker knows of the name.
package answer
