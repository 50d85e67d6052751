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

// View is a log that is only looked at. It may be open elsewhere meanwhile: a batch that is not complete is not there yet.
type View struct {
	dir      string
	segments []types.SegmentInfo
	First    uint64 // index of the first entry; 0: there is none
	Last     uint64
	Unread   string // where something stands behind the last entry that is no whole batch; empty: nothing
}

// viewTries is how often a log is looked at that changes meanwhile.
const viewTries = 10

// OpenView looks at the log in a directory and changes nothing. It checks no more than what it looks at.
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
	case !errors.Is(err, fs.ErrNotExist): // it is about to be made
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

// Entry answers one of the entries from First to Last. Its error is a [Damage] if it is not there any more.
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
		return nil, &Damage{path, fmt.Errorf("what stands at %d cannot be read, and entry %d stands behind it", sound.end, index)}
	}
	at := sound.entries[index-info.BaseIndex]
	length := int(binary.LittleEndian.Uint32(content[at+4:]))
	entry := new(raft.Log)
	if err := new(raftwal.BinaryCodec).Decode(content[at+wordSize:at+wordSize+length], entry); err != nil {
		return nil, &Damage{path, fmt.Errorf("entry %d: %w", index, err)}
	}
	return entry, nil
}
