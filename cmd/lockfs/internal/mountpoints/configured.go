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

// fstab is the configuration of mount(8).
const fstab = "/etc/fstab"

// Point is a configured mount point.
type Point struct {
	Dir string
	By  string // the file with the configuration
}

// Configured returns the mount points of lockfs up and /etc/fstab. Users without access to the settings get
// those of lockfs up from the record.
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
