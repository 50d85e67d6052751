package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockfs/cmd/lockfs/internal/cli"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func rmCommand() *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "rm [--force] PATH...",
		Short: "Remove locks, or explain why one cannot be removed",
		Long: `Remove files, symbolic links and empty directories on a mount, like rm and
rmdir. If lockfs refuses, the error names the holder and the next step. A PATH
outside a mount of lockfs is an error. The command stops at the first failure.

--force breaks the lock of a live holder, from any host. The holder goes on as
if it held the lock, so make sure first that it does no harm. Permissions apply
as for rm. Each forced removal and each refusal is an event (lockfs events).`,
		Example: `  lockfs rm /locks/deploy.lock
  lockfs rm --force /locks/deploy.lock`,
		Args: cli.Exactly(1, cli.AnyNumber),
		RunE: func(cmd *cobra.Command, args []string) error { return remove(cmd.Context(), args, force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove the lock of a live holder too")
	return cmd
}

// remove removes names in order, or none unless every path is on a mount.
func remove(ctx context.Context, paths []string, force bool) error {
	victims := make([]*victim, len(paths))
	for i, path := range paths {
		var err error
		if victims[i], err = findVictim(path); err != nil {
			return withRest(err, slices.Delete(slices.Clone(paths), i, i+1))
		}
	}
	for i, v := range victims {
		if err := ctx.Err(); err != nil {
			return withRest(err, paths[i:])
		}
		if err := v.remove(force); err != nil {
			return withRest(err, paths[i+1:])
		}
	}
	return nil
}

func withRest(err error, rest []string) error {
	if len(rest) == 0 {
		return err
	}
	words := make([]string, len(rest))
	for i, path := range rest {
		words[i] = cli.Word(path)
	}
	return fmt.Errorf("%w; therefore also not removed: %s", err, strings.Join(words, " "))
}

// victim is a name to remove.
type victim struct {
	path      string // as given
	root      string // root of the mount
	below     string // path from the root
	directory bool
}

// findVictim resolves symbolic links in the directory part only: the last element may be a lock.
func findVictim(path string) (*victim, error) {
	trimmed := strings.TrimRight(path, "/")
	cut := strings.LastIndexByte(trimmed, '/') + 1
	dir, name := trimmed[:cut], trimmed[cut:]
	if name == "" || name == "." || name == ".." {
		return nil, fmt.Errorf("%s: give the name of a lock", cli.Word(path))
	}
	if !filepath.IsAbs(dir) {
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		dir = here + "/" + dir // not cleaned: .. after a symbolic link leads elsewhere
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := mountRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cli.Word(path), err)
	}
	below, err := filepath.Rel(root, filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Lstat(filepath.Join(dir, name), &st)
	directory := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if err == nil && len(trimmed) < len(path) && !directory {
		err = unix.ENOTDIR
	}
	if err != nil {
		return nil, &os.PathError{Op: "remove", Path: path, Err: err}
	}
	return &victim{path: path, root: root, below: below, directory: directory}, nil
}

// Removal returns the command to remove a lock even if it is held.
func Removal(path string) string {
	if _, err := findVictim(path); err == nil || errors.Is(err, unix.ENOENT) { // the name may be missing for a moment
		return "lockfs rm --force " + argument(path)
	}
	return "rm " + argument(path)
}

// argument returns a path as an argument, never as a flag.
func argument(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return cli.ShellWord(path)
}

func (v *victim) remove(force bool) error {
	name := filepath.Join(v.root, v.below)
	if force {
		name = filepath.Join(v.root, controlDir, "force", v.below)
	}
	take := unix.Unlink
	if v.directory {
		take = unix.Rmdir
	}
	err := take(name)
	switch {
	case err == nil:
		return nil
	case !force && errors.Is(err, unix.EBUSY):
		return v.held(name)
	case !force && errors.Is(err, unix.ENOENT):
		if _, there := os.Lstat(name); there == nil {
			return fmt.Errorf("%s is not removed: the lock that the calling program inspected is gone, and another one "+
				"has its name; inspect it again before you remove it", cli.Word(v.path))
		}
	}
	return &os.PathError{Op: "remove", Path: v.path, Err: err}
}

// held explains why a held lock cannot be removed from this host.
func (v *victim) held(name string) error {
	know := func(attribute string) string {
		value, _ := LockAttribute(name, attribute)
		return value
	}
	lock := lockOf(know("format"), know("holder"), know("host"), know("pid"))
	return errors.New(explainHeld(v, know("state"), lock, know("host")))
}

func explainHeld(v *victim, state, lock, host string) string {
	said := cli.Word(v.path) + " is not removed: "
	switch state {
	case "":
		said += "it is held, see " + cli.Word(filepath.Join(v.root, controlDir, "why", v.below)) + "; wait"
	case "unreachable":
		said += fmt.Sprintf("its host %s is unreachable and may still hold it (%s); wait until the host is back, or run "+
			"`lockfs host forget %[1]s` if it is gone for good", cli.Word(host), lock)
	default:
		said += fmt.Sprintf("it is held (%s); wait, or let its holder release it", lock)
	}
	return said + "; --force breaks the lock of a live holder"
}
