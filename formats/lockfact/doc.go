// Package lockfact is the vocabulary that the lock-file formats share: what is known about a lock
// ([Facts]), where and when its content was written ([Origin]), and what an administrator changed ([Rule]).
//
// It exists so that lockfs/formats/tower and its siblings can be imported alone: each of them imports
// this package and nothing else of lockfs, and lockfs/formats, which imports all of them, gives the
// same types under its own name. Programs that use several formats import lockfs/formats and need not
// know this package.
package lockfact
