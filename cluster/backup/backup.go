package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

// Write writes a backup of a state. It completes the header from the snapshot. To get the length, it reads
// the snapshot an additional time.
func Write(w io.Writer, h Header, snapshot *namespace.Snapshot) error {
	var length counter
	if err := snapshot.Write(&length); err != nil {
		return err
	}
	h.Version, h.Length = formatVersion, int64(length)
	h.Index, h.ClusterTime = uint64(snapshot.Index()), snapshot.Time().UTC()
	sum := sha256.New()
	to := io.MultiWriter(w, sum)
	if err := h.write(to); err != nil {
		return err
	}
	if err := snapshot.Write(to); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Check reads a backup and compares its checksum. It needs only a buffer's memory. The error is [ErrDamaged],
// codec.ErrNewer, or the reader's.
func Check(r io.Reader) (*Header, error) {
	h, rest, err := begin(r)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, rest.snapshot); err != nil {
		return nil, err
	}
	return h, rest.end()
}

// Read checks a backup completely and returns its state. In addition to the errors of [Check], it returns
// codec.ErrOlder, and an error for an inconsistent state.
func Read(r io.Reader) (*Header, *namespace.Namespace, error) {
	h, rest, err := begin(r)
	if err != nil {
		return nil, nil, err
	}
	state, err := namespace.Restore(rest.snapshot)
	if errors.Is(err, codec.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err == nil {
		err = rest.end()
	}
	if err == nil {
		err = state.CheckVersion(version.Own())
	}
	if err == nil && state.Index() != ids.Index(h.Index) {
		err = fmt.Errorf("%w: its state is that of index %d", ErrDamaged, state.Index())
	}
	if err != nil {
		return nil, nil, err
	}
	return h, state, nil
}

type remainder struct {
	in       *bufio.Reader
	sum      hash.Hash // of all bytes read before
	snapshot io.Reader
	short    *io.LimitedReader
}

func begin(r io.Reader) (*Header, *remainder, error) {
	sum := sha256.New()
	in := bufio.NewReaderSize(r, 64<<10)
	h, err := readHeader(in, sum)
	if err != nil {
		return nil, nil, err
	}
	short := &io.LimitedReader{R: in, N: h.Length}
	return h, &remainder{in: in, sum: sum, snapshot: io.TeeReader(short, sum), short: short}, nil
}

// end checks the part after the snapshot.
func (r *remainder) end() error {
	got := make([]byte, sha256.Size)
	if _, err := io.ReadFull(r.in, got); err != nil && !isEnd(err) {
		return err
	}
	if r.short.N != 0 || !bytes.Equal(got, r.sum.Sum(nil)) {
		return ErrDamaged
	}
	if _, err := r.in.ReadByte(); err == nil {
		return fmt.Errorf("%w: there are bytes after its end", ErrDamaged)
	} else if !isEnd(err) {
		return err
	}
	return nil
}
