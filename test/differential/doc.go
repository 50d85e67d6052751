// Package differential compares a mount with a local disk, call by call.
//
// # Sequences
//
// Three families of processes, each on a mount of its own, make random calls in turn. They use few names and
// so meet often: one removes another's open file, replaces a file by a directory, or rewrites a file that the
// third has read. Three processes on one local file system make the same calls. All results must be equal,
// and at the end all names and contents.
//
// A [Step] is a family's work without another family in between: one call, or a few calls that belong
// together, such as create, write and close. A sequence follows from its seed, except for the pids. Any part
// of it is a sequence too, so a failing one can be shortened: see [Match.Shorten].
//
// # Modes
//
//   - [Plain] writes data: no exclusive creation, and contents that are no lock by themselves, such as
//     numbers, times, host names and pids. Nothing may differ.
//   - [Exclusive] creates names in every way, with contents without facts, and no call sees an empty file.
//     Nothing may differ. An empty directory could be a lock, so a family lists its parent before it removes
//     or renames one.
//   - [Locks] does everything, with locks of all formats. A difference must be a refusal explained by the
//     guards ([guards]), and the guards' demands must be refused. Refused calls are not made on the local
//     file system.
//
// In [Locks], a write to a file removed by another host may return ESTALE, because it may have been a lock.
// Data never does.
//
// Not compared: inode numbers, times, and the sizes and link counts of directories.
package differential
