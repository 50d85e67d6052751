// Package differential compares a mount with a local disk, call by call.
//
// # Sequences
//
// Three families of processes, each with a mount of its own, do calls in turn, at random, with few names, so that they
// meet again and again: one removes what another has open, puts a directory where a file was, or rewrites what the third
// read. The same calls are done by three processes on one local file system. Each call has to answer the same there, and
// so have all names and contents in the end.
//
// A [Step] is what one family does without another in between: one call, or a few that programs do together, such as to
// create, write and close. A sequence follows from its seed, apart from the numbers of the processes. Any part of one is
// a sequence too, so that one that shows a difference can be shortened: see [Match.Shorten].
//
// # Modes
//
//   - [Plain] is what programs write as data: no name is made exclusively, and contents are anything that is not a lock by
//     itself, such as numbers, times, and the names of hosts and processes. Nothing may differ.
//   - [Exclusive] makes names in every way there is, with contents that tell nothing: no call sees an empty file. Nothing may
//     differ. A directory that is empty could be a lock, so who removes or renames one has just listed where it is.
//   - [Locks] is everything, with locks of all formats. What differs there must be a refusal that the guards explain
//     ([guards]), and what they demand must be refused. A call that is refused is not done on the local file system.
//
// In [Locks] a file that was removed from another host may answer writes with ESTALE: it may have been a lock. Data never does.
//
// What is not compared: inode numbers and times, the sizes of directories and how many names they have.
package differential
