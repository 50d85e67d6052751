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

	"lockfs/cluster/durable"
)

// segmentSize is small enough to be read through at each start, and large enough for some ten thousand entries.
const segmentSize = 4 << 20

// Log is raft's log on disk.
type Log struct {
	*raftwal.WAL
	meta *meta

	mu     sync.Mutex // held while something is written
	failed error      // of the first write that was not done, or not in full
}

// Open opens the log in a directory, or begins one there if it is not used yet. The error is a [Damage] if something that
// was written is missing.
//
// All that has to get to the disk for the log to go on is written by persist, which may repeat it: each write by itself, since what they are
// part of cannot be repeated. After one that failed even so the log only is to be closed.
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
		err = durable.SyncDir(filepath.Dir(dir))
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

// StoreLog is part of raft.LogStore.
func (l *Log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs is part of raft.LogStore.
func (l *Log) StoreLogs(entries []*raft.Log) error {
	return l.write(func() error { return l.WAL.StoreLogs(entries) })
}

// DeleteRange is part of raft.LogStore.
func (l *Log) DeleteRange(first, last uint64) error {
	return l.write(func() error { return l.WAL.DeleteRange(first, last) })
}

// write refuses everything once something has failed. Nobody knows then what the files hold, and raft-wal goes on with what it has in
// memory: with a segment that is no longer listed, in front of the rest of a larger batch, or as if a segment had its index. All of that
// would be acknowledged, and be missing or damage when the log is opened again, which is what finds out where it ends.
func (l *Log) write(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		// It does not wrap what failed: who waits for space and tries again would do so for ever.
		return fmt.Errorf("a write of the log has failed before (%s): start this server again", l.failed.Error())
	}
	l.failed = do()
	return l.failed
}

// Close notes where the log ends, unless something failed: what that left is judged like that of a process that was killed.
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

// checkSegments checks all that there should be, wipes what is torn, and notes that the log is open.
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

// checkSegment answers what a segment holds. Nothing was being written to a log that was closed.
func checkSegment(m *meta, info types.SegmentInfo) (tail, error) {
	path := filepath.Join(m.dir, segment.FileName(info))
	isSealed := !info.SealTime.IsZero()
	var content []byte
	var err error
	if !isSealed {
		err = durable.Sync(path)
	}
	if err == nil {
		content, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && isSealed:
		return tail{}, &Damage{path, errors.New("it is missing")}
	case errors.Is(err, fs.ErrNotExist):
		return tail{}, nil // it is made once it has been noted, and has nothing until its directory has been synced
	case err != nil:
		return tail{}, err
	case isSealed:
		return tail{last: info.MaxIndex}, wrong(path, checkSealed(content, info))
	case len(content) < int(info.SizeLimit) && used(content) == 0:
		return tail{}, os.Remove(path) // it was being made
	}
	has, err := checkTail(content, info)
	switch {
	case err != nil:
		return tail{}, wrong(path, err)
	case has.torn.empty():
		return has, nil
	case m.data.Closed:
		return tail{}, &Damage{path, fmt.Errorf("what stands at %d cannot be read", has.torn.from)}
	}
	return has, wipe(path, has.torn)
}

// wrong says of a segment what its content is not; that is damage unless the content is sound.
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
