package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"lockfs/fusefs/mountpoint"
)

// refusals are errors of the cluster or of the file under the probe's name. Each of them is an answer.
var refusals = []error{
	fs.ErrPermission, fs.ErrNotExist, syscall.EDQUOT, syscall.ENOSPC,
	syscall.ELOOP, syscall.EISDIR, syscall.ENXIO, // a link, a directory, a named pipe or socket
}

// probe creates and removes a file on a mount, which shows that a majority of the servers answers this host. The file is no lock, which an
// exclusive creation would make it. A refusal is nil: the cluster has answered.
//
// A mount may never answer; probe returns when ctx ends.
func probe(ctx context.Context, dir, host string) error {
	if _, mounted, err := mountpoint.Source(dir); err != nil || !mounted {
		return errors.Join(err, fmt.Errorf("lockfs is not mounted at %s", dir))
	}
	answer := make(chan error, 1)
	go func() {
		name := filepath.Join(dir, ".lockfs-up-"+host)
		// Every user can put something under that name: a link must not be followed, and a named pipe without a reader not be waited for.
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err == nil {
			err = errors.Join(file.Close(), os.Remove(name))
		}
		if slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) }) {
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
