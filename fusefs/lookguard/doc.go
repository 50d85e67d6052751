// Package lookguard remembers which lock a process saw last under a name: by reading it (also as a symbolic
// link), making it or writing to it. Removals, replacements and truncations carry the observation of the
// nearest relative. The cluster refuses them if another lock is there now.
//
// A process shares its observations with its ancestors in the same process group: scripts read with one
// command and remove with another. An interactive shell gives each command its own process group, so no
// earlier command guards a removal.
//
// Asking for attributes is no observation, as rm itself does it. An observation of an empty file counts as
// undecided, except for locks of the same family. The memory lasts ten minutes, also across processes of the
// mount ([Memory.KeepIn]).
//
// The memory takes at most 32 MiB (mostBytes), and soon drops observations of ended processes. When it is
// full, the users with the largest shares lose observations: first their processes with the most, and of
// these the oldest. No user loses any because of others. A forgotten observation no longer guards its
// process. Reading too many locks within ten minutes is no way around a guard: not reading has the same
// effect.
//
// The memory has locks only: a process that sees data under a name, or removes it, forgets the earlier lock.
// A process that lists a directory itself, like rm -rf and find -delete, is not guarded by earlier
// observations in it. Later ones of its family still count.
package lookguard
