package debugbundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// sizes lists the files below a directory with their times, sizes and names, without opening them.
func (c *collection) sizes(name, dir string) {
	var list bytes.Buffer
	fmt.Fprintf(&list, "%s\n", dir)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		fmt.Fprintf(&list, "%s  %s  %12d  %s\n", info.Mode(), info.ModTime().UTC().Format(time.RFC3339), info.Size(), below)
		return err
	})
	if err != nil {
		c.lack(name, err)
	}
	c.text(name, list.Bytes())
}
