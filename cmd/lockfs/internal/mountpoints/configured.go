package mountpoints

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
)

// fstab is where mount(8) reads of mounts.
const fstab = "/etc/fstab"

// Point is a mount point that is configured.
type Point struct {
	Dir string
	By  string // the file that names it
}

// Configured returns the mount points of lockfs up and of /etc/fstab, each once. Users who may not read the settings find those of
// lockfs up in the record.
func Configured() ([]Point, error) { return configuredIn(cli.SettingsFile, recordFile, fstab) }

func configuredIn(settings, record, fstab string) (points []Point, err error) {
	add := func(dir, by string) {
		if dir = filepath.Clean(dir); filepath.IsAbs(dir) && !slices.ContainsFunc(points, func(p Point) bool { return p.Dir == dir }) {
			points = append(points, Point{dir, by})
		}
	}
	text, err := os.ReadFile(settings)
	switch {
	case errors.Is(err, fs.ErrPermission):
		entries, err := readRecord(record)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		for _, e := range entries {
			if e.up {
				add(e.dir, settings)
			}
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		values := make(map[string]string)
		for line := range strings.Lines(string(text)) {
			name, value := cli.Assignment(line)
			values[name] = value
		}
		if values[cli.RoleVariable] != "" {
			add(values[cli.MountVariable], settings)
		}
	}
	dirs, err := mountpoint.InFstab(fstab)
	for _, dir := range dirs {
		add(dir, fstab)
	}
	return points, err
}
