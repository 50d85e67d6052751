package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"lockfs/cluster/atomicfile"
)

// segmentSize is small enough for a full read at each start, and has room for some ten thousand entries.
const segmentSize = 4 << 20

// Log is raft's log on disk.
type Log struct {
	*raftwal.WAL
	meta *meta

	mu     sync.Mutex // held during writes
	failed error      // error of the first failed or incomplete write
}

// Open opens the log in a directory, or creates one if the directory is unused. It returns a [Damage] if
// written data is missing.
//
// The log does all essential writes through persist, which may retry them one by one; raft-wal's larger
// operations cannot be retried. After a write has failed even so, only Close is useful.
func Open(dir string, used bool, logger hclog.Logger, persist Persist) (*Log, error) {
	return open(dir, used, segmentSize, logger, segmentFiles{walfs.New(), persist})
}

func open(dir string, used bool, segmentSize int, logger hclog.Logger, files segmentFiles) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	m, err := loadMeta(dir)
	m.persist = files.persist
	switch {
	case err == nil:
		err = checkSegments(m)
	case errors.Is(err, fs.ErrNotExist) && used:
		err = &Damage{filepath.Join(dir, metaFile), errors.New("it is missing")}
	case errors.Is(err, fs.ErrNotExist):
		err = atomicfile.SyncDir(filepath.Dir(dir))
	}
	if err != nil {
		return nil, err
	}
	log, err := raftwal.Open(dir, raftwal.WithMetaStore(m), raftwal.WithSegmentSize(segmentSize), raftwal.WithLogger(logger),
		raftwal.WithSegmentFiler(segment.NewFiler(dir, files)))
	if err != nil {
		return nil, fmt.Errorf("open the log in %s: %w", dir, err)
	}
	return &Log{WAL: log, meta: m}, nil
}

// StoreLog implements raft.LogStore.
func (l *Log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (l *Log) StoreLogs(entries []*raft.Log) error {
	return l.write(func() error { return l.WAL.StoreLogs(entries) })
}

// DeleteRange implements raft.LogStore.
func (l *Log) DeleteRange(first, last uint64) error {
	return l.write(func() error { return l.WAL.DeleteRange(first, last) })
}

// write refuses all writes after a failed one. The contents of the files are then unknown, and raft-wal
// continues with its memory. It could use a segment missing in the list, the rest of a larger batch, or a
// segment without its index. All of this would be acknowledged, and then be missing or damaged at the next
// Open, which determines the real end.
func (l *Log) write(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		// The error does not wrap the cause: a caller which waits for space would retry forever.
		return fmt.Errorf("a write of the log has failed before (%s): start this server again", l.failed.Error())
	}
	l.failed = do()
	return l.failed
}

// Close records the end of the log. After a failed write it does not, and the next Open checks the log as
// after a kill.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	end, err := l.LastIndex()
	if err := errors.Join(err, l.WAL.Close()); err != nil || l.failed != nil {
		return err
	}
	l.meta.data.Closed, l.meta.data.End = true, end
	return l.meta.save()
}

// checkSegments checks all segments, wipes a torn batch, and records the log as open.
func checkSegments(m *meta) error {
	var end tail
	for _, info := range m.data.Segments {
		has, err := checkSegment(m, info)
		if err != nil {
			return err
		}
		if has.last == 0 {
			has.last = end.last
		}
		end = has
	}
	if m.data.Closed && end.last != m.data.End {
		path := filepath.Join(m.dir, metaFile)
		if n := len(m.data.Segments); n > 0 {
			path = filepath.Join(m.dir, segment.FileName(m.data.Segments[n-1]))
		}
		return &Damage{path, fmt.Errorf("the last entry is %d; when the log was closed it was %d", end.last, m.data.End)}
	}
	return m.open(end)
}

// checkSegment checks a segment. In a closed log it accepts no torn batch.
func checkSegment(m *meta, info types.SegmentInfo) (tail, error) {
	path := filepath.Join(m.dir, segment.FileName(info))
	isSealed := !info.SealTime.IsZero()
	var content []byte
	var err error
	if !isSealed {
		err = atomicfile.Sync(path)
	}
	if err == nil {
		content, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && isSealed:
		return tail{}, &Damage{path, errors.New("it is missing")}
	case errors.Is(err, fs.ErrNotExist):
		return tail{}, nil // the file is created after its entry, and empty until the sync of the directory
	case err != nil:
		return tail{}, err
	case isSealed:
		return tail{last: info.MaxIndex}, wrong(path, checkSealed(content, info))
	case len(content) < int(info.SizeLimit) && used(content) == 0:
		return tail{}, os.Remove(path) // its creation was incomplete
	}
	has, err := checkTail(content, info)
	switch {
	case err != nil:
		return tail{}, wrong(path, err)
	case has.torn.empty():
		return has, nil
	case m.data.Closed:
		return tail{}, &Damage{path, fmt.Errorf("the bytes at %d cannot be read", has.torn.from)}
	}
	return has, wipe(path, has.torn)
}

// wrong wraps the error of a segment in a [Damage] unless the contents are sound.
func wrong(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNewer), errors.Is(err, errMisplaced):
		return fmt.Errorf("%s: %w", path, err)
	}
	return &Damage{path, err}
}

func wipe(path string, s span) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(make([]byte, s.to-s.from), int64(s.from))
	return errors.Join(err, file.Sync(), file.Close())
}
