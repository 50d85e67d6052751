package protocol

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/formats/beads"
)

// beadsFields are the fields of --json for beads only.
type beadsFields struct {
	Version string `json:"version,omitempty"`
}

// lookAtBeads returns a lookup of a database's lock.
func lookAtBeads(dir string) lookup {
	return func() (lockState, any) {
		state := lookAt(filepath.Join(dir, beads.FileName), formats.Beads, 0)
		var fields beadsFields
		if lock, err := beads.Read(dir); err == nil {
			fields.Version = lock.Version
		}
		return state, fields
	}
}

func addBeadsHolder(cmd *cobra.Command, holder, version *string) {
	cmd.Flags().StringVar(holder, "holder", "", "name of the holding program, for other users (required)")
	cmd.Flags().StringVar(version, "version", "", "version of the holding program")
}

func newBeadsLock(holder, version string) (*beads.ExclusiveLock, error) {
	if holder == "" {
		return nil, errors.New("give --holder NAME: others are shown it when they find the database locked")
	}
	return beads.NewExclusiveLock(holder, version)
}

// lockToken returns the fencing token of a lock, or "" if there is none.
func lockToken(path string) (string, error) { return admin.LockAttribute(path, "token") }

// beadsDir returns the absolute path of a beads directory. It rejects the directory above .beads: the daemon
// does not look for the lock there.
func beadsDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("DIR is empty; give the directory of a beads database, mostly .beads")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("%w; give the directory of a beads database, mostly .beads", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no directory; give that of a beads database, mostly .beads", cli.Word(dir))
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	inside := filepath.Join(dir, ".beads")
	if info, err := os.Stat(inside); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s has the database in .beads, where the daemon looks for the lock; give %s", cli.Word(dir), cli.Word(inside))
	}
	return dir, nil
}

// malformedBeads adds advice to the error of a lock file that cannot be parsed.
func malformedBeads(dir string, err error) error {
	return fmt.Errorf("%w; look at %s, and correct or remove it", err, cli.Word(filepath.Join(dir, beads.FileName)))
}

// explainBeads adds advice to an error. blocked is the exit code if another program holds the lock.
func explainBeads(dir string, blocked int, what string, err error) error {
	path := cli.Word(filepath.Join(dir, beads.FileName))
	var held *beads.HeldError
	var malformed *beads.MalformedError
	switch {
	case errors.As(err, &held):
		return cli.Exit(blocked, fmt.Errorf("%s: %w; %s", what, err, removeHint(err.Error(), filepath.Join(dir, beads.FileName))))
	case errors.As(err, &malformed):
		return fmt.Errorf("%s: %w", what, malformedBeads(dir, err))
	case errors.Is(err, unix.EBUSY):
		return cli.Exit(blocked, fmt.Errorf("%s: %w; the mount reports a live holder, see `lockfs locks %s`", what, err, cli.ShellWord(path)))
	case errors.Is(err, beads.ErrChanged):
		return cli.Exit(blocked, fmt.Errorf("%s: %w; see `lockfs beads check %s`", what, err, cli.ShellWord(dir)))
	}
	return fmt.Errorf("%s: %w", what, err)
}
