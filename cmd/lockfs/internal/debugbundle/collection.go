package debugbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// mostBytes limits a file of a bundle; the rest is cut off.
const mostBytes = 64 << 20

// collection is the files of a bundle.
type collection struct {
	name string // of the folder with all files
	made time.Time

	mu      sync.Mutex
	files   []file
	missing []string
}

type file struct {
	name    string
	content []byte
}

// text adds a text without secrets.
func (c *collection) text(name string, content []byte) { c.binary(name, redact(content)) }

// binary adds profiles of the runtime, without redaction.
func (c *collection) binary(name string, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = append(c.files, file{name, content[:min(len(content), mostBytes)]})
}

// lack records why a part is missing from the bundle.
func (c *collection) lack(name string, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	said, _, _ := strings.Cut(string(redact([]byte(why.Error()))), "\n")
	c.missing = append(c.missing, name+": "+said)
}

// write writes the archive, sorted by name.
func (c *collection) write(w io.Writer) error {
	slices.Sort(c.missing)
	if len(c.missing) > 0 {
		c.text("missing.txt", []byte(strings.Join(c.missing, "\n")+"\n"))
	}
	slices.SortFunc(c.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, f := range c.files {
		header := &tar.Header{
			Name: c.name + "/" + f.name, Mode: 0o600, Size: int64(len(f.content)), ModTime: c.made, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := io.Copy(archive, bytes.NewReader(f.content)); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zipped.Close()
}
