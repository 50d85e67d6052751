package mountpoints

import (
	"fmt"
	"path/filepath"
	"strings"

	"lockfs/fusefs/mountpoint"
)

// Require returns an error for a path at or below a configured mount point without its mount: a lock there
// would only hold on this host. It opens directories to trigger automounts, but does not access a mount,
// which may be dead or hang.
func Require(path string) error {
	points, err := Configured()
	if err != nil {
		return fmt.Errorf("read the configured mount points: %w", err)
	}
	return requireOf(path, points)
}

func requireOf(path string, points []Point) error {
	if len(points) == 0 {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	paths := []string{path}
	for _, p := range points {
		if isBelow(path, p.Dir) {
			return requireMount(path, p)
		}
	}
	// Symbolic links may lead there. No mount of lockfs is on the way so far.
	if dir, err := mountpoint.Resolve(filepath.Dir(path)); err == nil {
		paths = append(paths, filepath.Join(dir, filepath.Base(path)))
	}
	if resolved, err := mountpoint.Resolve(path); err == nil { // a directory of locks
		paths = append(paths, resolved)
	}
	for _, p := range points {
		dir, err := mountpoint.Resolve(p.Dir)
		if err != nil {
			continue // nothing below it
		}
		for _, path := range paths {
			if isBelow(path, dir) {
				return requireMount(path, p)
			}
		}
	}
	return nil
}

func requireMount(path string, p Point) error {
	mounted, err := mountpoint.MountedAt(p.Dir)
	switch {
	case err != nil:
		return fmt.Errorf("lockfs is not mounted at %s, although %s lists it (%w): a lock at %s would not exclude other hosts; mount it with `lockfs up` or `mount %[1]s`",
			p.Dir, p.By, err, path)
	case !mounted:
		return fmt.Errorf("lockfs is not mounted at %s, although %s lists it: a lock at %s would not exclude other hosts; mount it with `lockfs up` or `mount %[1]s`",
			p.Dir, p.By, path)
	}
	return nil
}

func isBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
