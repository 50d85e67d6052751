package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"lockfs/fusefs/mountpoint"
)

// probe makes a file on a mount, and removes it: then a majority of the servers does what this host asks for. The file is no
// lock, which an exclusive creation would make it. A refusal is an answer of theirs too, and nil.
//
// A mount may never answer: then it is left alone when ctx ends.
func probe(ctx context.Context, dir, host string) error {
	if _, mounted, err := mountpoint.Source(dir); err != nil || !mounted {
		return errors.Join(err, fmt.Errorf("lockfs is not mounted at %s", dir))
	}
	answer := make(chan error, 1)
	go func() {
		name := filepath.Join(dir, ".lockfs-up-"+host)
		// Any user can put a link there, which must not be followed.
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err == nil {
			err = errors.Join(file.Close(), os.Remove(name))
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
			err = nil
		}
		answer <- err
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s does not answer: %w", dir, ctx.Err())
	}
}
