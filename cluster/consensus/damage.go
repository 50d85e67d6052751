package consensus

import (
	"errors"
	"fmt"
	"io/fs"

	"lockfs/raftstore/codec"

	bbolterrors "go.etcd.io/bbolt/errors"
)

// DamagedError says that a file of the data directory is not what was once written to it.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged (%v). This node cannot be trusted with its vote any more: "+
		"take it out with `lockfs member remove`, move the data directory away, and start it again with --join "+
		"and an empty one; the other members bring it up to date. If it is the only member, there is `lockfs restore`",
		e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// damagedOr answers a DamagedError unless an error is the disk's, or is about another version: neither says that anything is
// damaged, so neither may lead to anything being moved away.
func damagedOr(path string, err error) error {
	failed := new(fs.PathError)
	switch {
	case errors.Is(err, codec.ErrNewer), errors.Is(err, codec.ErrOlder):
		return fmt.Errorf("%s: %w", path, err)
	case errors.Is(err, bbolterrors.ErrVersionMismatch):
		return fmt.Errorf("%s: %w", path, codec.ErrNewer)
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("%s is in use by another process (%w); stop that first", path, err)
	case errors.As(err, &failed) && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return &DamagedError{Path: path, Err: err}
}
