package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// View is a read-only view of a log. The log may be open elsewhere; an incomplete batch is not visible.
type View struct {
	dir      string
	segments []types.SegmentInfo
	First    uint64 // index of the first entry; 0: the log is empty
	Last     uint64
	Unread   string // position of an incomplete batch after the last entry; empty: none
}

// viewTries limits the attempts to view a changing log.
const viewTries = 10

// OpenView opens a view of the log in a directory, without changes to it. It checks only the parts it reads.
func OpenView(dir string) (*View, error) {
	for try := 1; ; try++ {
		view, err := openView(dir)
		if err == nil || try == viewTries || !errors.Is(err, fs.ErrNotExist) {
			return view, err
		}
	}
}

func openView(dir string) (*View, error) {
	m, err := loadMeta(dir)
	if err != nil {
		return nil, err
	}
	v := &View{dir: dir, segments: m.data.Segments}
	if len(v.segments) == 0 {
		return v, nil
	}
	newest := len(v.segments) - 1
	v.Last = v.segments[newest].BaseIndex - 1
	content, sound, err := v.read(v.segments[newest])
	switch {
	case err == nil:
		v.Last += sound.count()
		if used(content[sound.end:]) > 0 {
			v.Unread = fmt.Sprintf("%s from byte %d on", filepath.Join(dir, segment.FileName(v.segments[newest])), sound.end)
		}
	case !errors.Is(err, fs.ErrNotExist): // a missing segment is about to be created
		return nil, err
	}
	if v.Last >= v.segments[0].MinIndex {
		v.First = v.segments[0].MinIndex
	} else {
		v.Last = 0
	}
	return v, nil
}

func (v *View) read(info types.SegmentInfo) ([]byte, batches, error) {
	path := filepath.Join(v.dir, segment.FileName(info))
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, batches{}, err
	}
	sound := readBatches(content)
	if sound.end > 0 {
		err = wrong(path, checkHeader(content, info))
	}
	return content, sound, err
}

// Entry returns the entry with an index from First to Last. It returns a [Damage] if the entry has
// disappeared.
func (v *View) Entry(index uint64) (*raft.Log, error) {
	if index < v.First || index > v.Last || v.First == 0 {
		return nil, fmt.Errorf("there is no entry %d in the log: it has those from %d to %d", index, v.First, v.Last)
	}
	number := len(v.segments) - 1
	for v.segments[number].BaseIndex > index {
		number--
	}
	info := v.segments[number]
	content, sound, err := v.read(info)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(v.dir, segment.FileName(info))
	if index-info.BaseIndex >= sound.count() {
		return nil, &Damage{path, fmt.Errorf("the bytes at %d cannot be read, and entry %d follows", sound.end, index)}
	}
	at := sound.entries[index-info.BaseIndex]
	length := int(binary.LittleEndian.Uint32(content[at+4:]))
	entry := new(raft.Log)
	if err := new(raftwal.BinaryCodec).Decode(content[at+wordSize:at+wordSize+length], entry); err != nil {
		return nil, &Damage{path, fmt.Errorf("entry %d: %w", index, err)}
	}
	return entry, nil
}
