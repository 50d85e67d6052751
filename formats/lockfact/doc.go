// Package lockfact has the types shared by the lock-file formats: the facts about a lock ([Facts]), the
// origin of its content ([Origin]), and an administrator's settings ([Rule]).
//
// This package allows programs to import lockfs/formats/tower and its siblings alone: they import lockfact,
// and not lockfs/formats. lockfs/formats imports all of them, and has these types under its own name.
// Programs with several formats import lockfs/formats only.
package lockfact
