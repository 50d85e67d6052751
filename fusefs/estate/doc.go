// Package estate is what the process of a mount leaves to the one that goes on with the mount should it be killed: memory that
// both can have, in which it notes what is open and who has locks of it, as that changes. What the cluster or the kernel knows is
// not in it.
//
// A note costs a few stores. It is made before anybody is told of what it is about, and struck off after what it is about is over:
// so it may tell of too much, which can be released twice, and never of too little. Where there are more open files or owners of
// locks than there is room for, the estate is of no use (Left.Incomplete), and the mount ends with its process.
package estate
