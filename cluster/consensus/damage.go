package consensus

import (
	"errors"
	"fmt"
	"io/fs"

	"lockfs/raftstore/codec"

	bbolterrors "go.etcd.io/bbolt/errors"
)

// DamagedError reports a file of the data directory that differs from what was written.
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

// damagedOr returns a DamagedError, except for errors of the disk or about another version: these prove
// no damage, and files must not be moved away.
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
