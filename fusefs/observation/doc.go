// Package observation remembers which lock a process saw last under a name: when it read it (a symbolic link too), made it or
// wrote to it. What it sees, its ancestors in the same process group see too, for scripts look with one command and
// remove with another; an interactive shell gives each command a process group of its own, so it is never
// held to anything. A removal, a replacement and a truncation carry what the nearest relative saw, and the
// cluster refuses them if that is not what is there any more. Asking for attributes is not seeing: rm does
// that itself. What was read while it was still empty counts as not yet judged; but a family may do with
// its own locks what it likes. The memory lasts ten minutes, also beyond
// this process if another goes on with its mount (Memory.KeepIn).
//
// It takes 32 MiB at most (mostBytes), and what processes saw that have ended goes soon. Once it is full, the users who have
// most of it lose of what they saw, first their processes that saw most, the oldest first. Nobody loses anything by what
// others do. What is forgotten is not held against its process any more: who sees more locks than that within ten minutes removes
// as one does who has not looked. That is no way around a guard: it could as well not look.
//
// It is of locks only: who sees that a name is data has forgotten what it was before. So has who removed it. A process that
// lists a directory itself, as rm -rf and find -delete do, is held to nothing that was seen of its names before, by whomever;
// what others of its family do later still is.
package observation
