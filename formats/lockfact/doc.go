// Package lockfact is the vocabulary that the lock-file formats share: what is known about a lock
// ([Facts]), where and when its content was written ([Origin]), what an administrator changed ([Rule])
// and what a judgement says ([Verdict]).
//
// It exists so that lockfs/formats/tower and its siblings can be imported alone: each of them imports
// this package and nothing else of lockfs, and lockfs/formats, which imports all of them, gives the
// same types under its own name. Programs that use several formats import lockfs/formats and need not
// know this package.
package lockfact
