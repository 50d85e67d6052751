package sim

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// disk is that of a server: a directory, in which each write of the log and of votes takes its time. The write is done at some moment
// of that, so a server that is stopped meanwhile may have it or not.
type disk struct {
	dir    string
	random *rand.Rand
	gone   chan struct{} // closed when the server has been stopped

	mu    sync.Mutex
	slow  time.Duration             // that a write takes in addition, at most
	skip  int                       // so many writes before
	armed func(before, after image) // is told of the next write, at which the power fails; nil: it does not
}

// writing is for cluster.Config.
func (d *disk) writing(write func() error) error {
	d.mu.Lock()
	armed := d.armed
	if d.skip--; d.skip >= 0 {
		armed = nil
	} else {
		d.armed = nil
	}
	takes := 200*time.Microsecond + time.Duration(d.random.Int64N(int64(time.Millisecond)))
	if d.slow > 0 {
		takes += time.Duration(d.random.Int64N(int64(d.slow)))
	}
	first := time.Duration(d.random.Int64N(int64(takes)))
	d.mu.Unlock()
	if !d.pause(first) {
		return fs.ErrClosed
	}
	if armed != nil {
		before := readImage(d.dir)
		err := write()
		armed(before, readImage(d.dir))
		<-d.gone
		return err
	}
	err := write()
	if !d.pause(takes - first) {
		return fs.ErrClosed
	}
	return err
}

// pause is false if the server was stopped meanwhile.
func (d *disk) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.gone:
		return false
	}
}

// image is what a directory holds, by paths relative to it.
type image map[string][]byte

func readImage(dir string) image {
	found := make(image)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			found[name] = nil
			return nil
		}
		content, err := os.ReadFile(path)
		if content == nil {
			content = []byte{}
		}
		found[name] = content
		return err
	})
	if err != nil {
		panic(err)
	}
	return found
}

// write makes a directory of an image.
func (i image) write(dir string) {
	for name, content := range i {
		path := filepath.Join(dir, name)
		if content == nil {
			must(os.MkdirAll(path, 0o700))
			continue
		}
		must(os.MkdirAll(filepath.Dir(path), 0o700))
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		must(err)
		_, err = file.Write(bytes.TrimRight(content, "\x00"))
		must(err)
		must(file.Truncate(int64(len(content))))
		must(file.Close())
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// sector is the least that a disk writes as a whole.
const sector = 512

// tear is what may be on a disk after a power cut in the midst of a write, of the log or of votes, which both know which writes come
// before which. If more than one file has changed there were several writes, and each of them was on disk before the next: then all of
// it is there, or nothing.
func tear(before, after image, random *rand.Rand) (image, string) {
	var changed []string
	for name, content := range after {
		if old, there := before[name]; !there || !bytes.Equal(old, content) {
			changed = append(changed, name)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			changed = append(changed, name)
		}
	}
	if len(changed) != 1 || len(before[changed[0]]) != len(after[changed[0]]) {
		if random.IntN(2) == 0 {
			return before, "nothing"
		}
		return after, "all"
	}
	name := changed[0]
	torn := make(image)
	for name, content := range after {
		torn[name] = content
	}
	content := bytes.Clone(after[name])
	torn[name] = content
	what := "torn " + filepath.Base(filepath.Dir(name))
	first, last := 0, len(content)
	if filepath.Base(name) == "votes.db" {
		// bbolt writes the pages of the data, then, once they are on disk, one of the first two.
		what = "torn votes"
		metas := 2 * os.Getpagesize()
		if random.IntN(2) == 0 {
			copy(content[:metas], before[name][:metas])
			first = metas
		} else {
			last = metas
		}
	}
	keep := random.IntN(4) // how much of it is there: some of everything, the beginning, or little
	for at := first; at < last; at += sector {
		end := min(at+sector, last)
		if bytes.Equal(content[at:end], before[name][at:end]) {
			continue
		}
		there := random.IntN(4) >= keep
		if keep == 3 {
			there = false
		}
		if !there {
			copy(content[at:end], before[name][at:end])
		}
	}
	return torn, what
}
