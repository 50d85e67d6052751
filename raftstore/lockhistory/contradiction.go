package lockhistory

import "lockfs/raftstore/linear"

// Contradiction is what cannot have been.
type Contradiction struct {
	Path  string // of the lock, as it was called last; of a kernel lock "inode N"
	Why   string
	Piece []*Step // the smallest part of the history that cannot have been either, in order
}

// Undecided is when a search took longer than it may.
type Undecided struct{ Path string }

func (e *Undecided) Error() string { return e.Path + ": " + linear.ErrUndecided.Error() }
