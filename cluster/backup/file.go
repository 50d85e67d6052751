package backup

import (
	"errors"
	"fmt"
	"io"
	"os"

	"lockfs/cluster/atomicfile"
)

// Create creates a file with the output of write, and checks it on disk. It replaces an existing file only
// after both succeed.
func Create(path string, write func(io.Writer) error) (*Header, error) {
	var h *Header
	err := atomicfile.ReplaceWith(path, func(file *os.File) (err error) {
		h, err = writeAndCheck(file, write)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return h, nil
}

func writeAndCheck(file *os.File, write func(io.Writer) error) (*Header, error) {
	if err := errors.Join(write(&piecewise{file: file}), file.Sync()); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return Check(file)
}

// piece is how many bytes may wait for the disk. A voter's log on the same disk waits for all of them.
const piece = 8 << 20

// piecewise is a file with a sync after each piece.
type piecewise struct {
	file    *os.File
	waiting int
}

func (p *piecewise) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	if p.waiting += n; err == nil && p.waiting >= piece {
		p.waiting = 0
		err = p.file.Sync()
	}
	return n, err
}
