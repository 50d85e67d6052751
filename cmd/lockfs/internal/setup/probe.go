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

// refusals are errors of the cluster or of a file with the probe's name. Each proves that the cluster
// answers.
var refusals = []error{
	fs.ErrPermission, fs.ErrNotExist, syscall.EDQUOT, syscall.ENOSPC,
	syscall.ELOOP, syscall.EISDIR, syscall.ENXIO, // a link, directory, named pipe or socket
}

// probe creates and removes a file on a mount. Success means that a quorum of the servers answers this host.
// The creation is not exclusive, so the file is no lock. A refusal is a success too, because it comes from
// the cluster.
//
// A mount may hang; probe returns when ctx ends.
func probe(ctx context.Context, dir, host string) error {
	if _, mounted, err := mountpoint.Source(dir); err != nil || !mounted {
		return errors.Join(err, fmt.Errorf("lockfs is not mounted at %s", dir))
	}
	answer := make(chan error, 1)
	go func() {
		name := filepath.Join(dir, ".lockfs-up-"+host)
		// Any user can create this name: do not follow a link, nor wait for the reader of a named pipe.
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
		return fmt.Errorf("%s does not respond: %w", dir, ctx.Err())
	}
}
