package wal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft-wal/types"

	"lockfs/cluster/atomicfile"
	"lockfs/raftstore/checksum"
)

const metaFile = "segments"

// meta lists the segments of the log. Each change replaces the file atomically and durably.
type meta struct {
	dir     string
	data    metaData
	persist Persist
}

var _ types.MetaStore = (*meta)(nil)

type metaData struct {
	types.PersistentState
	// Closed is set while the log is not open. End is then the index of the last entry, 0 if the log is
	// empty.
	Closed bool
	End    uint64
}

type sealed struct {
	Checksum uint32          `json:"checksum"` // CRC-32C of the bytes of State
	State    json.RawMessage `json:"state"`
}

// loadMeta returns fs.ErrNotExist if there is no log.
func loadMeta(dir string) (*meta, error) {
	m := &meta{dir: dir}
	path := filepath.Join(dir, metaFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	var outer sealed
	if err := json.Unmarshal(content, &outer); err != nil {
		return m, &Damage{path, err}
	}
	if checksum.Of(outer.State) != outer.Checksum {
		return m, &Damage{path, errors.New("its checksum differs")}
	}
	decoder := json.NewDecoder(bytes.NewReader(outer.State))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m.data); err != nil {
		return m, fmt.Errorf("%s: %w (%w)", path, errNewer, err)
	}
	return m, nil
}

func (m *meta) save() error {
	state, err := json.Marshal(&m.data)
	if err != nil {
		return err
	}
	content, err := json.Marshal(sealed{Checksum: checksum.Of(state), State: state})
	if err != nil {
		return err
	}
	return m.persist(func() error { return atomicfile.Replace(filepath.Join(m.dir, metaFile), content) })
}

// open records the log as open. It also seals a full segment if the process ended before it could: raft-wal
// neither appends to such a segment nor begins another.
func (m *meta) open(end tail) error {
	if !m.data.Closed && end.indexStart == 0 {
		return nil
	}
	m.data.Closed, m.data.End = false, 0
	if end.indexStart != 0 {
		now := time.Now()
		full := &m.data.Segments[len(m.data.Segments)-1]
		full.SealTime, full.MaxIndex, full.IndexStart = now, end.last, end.indexStart
		m.data.Segments = append(m.data.Segments, types.SegmentInfo{
			ID: m.data.NextSegmentID, BaseIndex: end.last + 1, MinIndex: end.last + 1, SizeLimit: full.SizeLimit,
			Codec: full.Codec, CreateTime: now,
		})
		m.data.NextSegmentID++
	}
	return m.save()
}

// Load implements types.MetaStore.
func (m *meta) Load(dir string) (types.PersistentState, error) {
	if dir != m.dir {
		return types.PersistentState{}, fmt.Errorf("%s was opened, not %s", m.dir, dir)
	}
	return m.data.PersistentState, nil
}

// CommitState implements types.MetaStore.
func (m *meta) CommitState(state types.PersistentState) error {
	m.data = metaData{PersistentState: state}
	return m.save()
}

// GetStable implements types.MetaStore. Votes are stored elsewhere.
func (m *meta) GetStable([]byte) ([]byte, error) { return nil, fs.ErrInvalid }

// SetStable implements types.MetaStore.
func (m *meta) SetStable([]byte, []byte) error { return fs.ErrInvalid }

// Close implements types.MetaStore.
func (m *meta) Close() error { return nil }
