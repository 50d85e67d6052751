package wal

import (
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/raft-wal/segment"

	"lockfs/raftstore/checksum"
)

// sectorSize is the smallest atomic write of a disk.
const sectorSize = 512

// span is a range of bytes.
type span struct{ from, to int }

func (s span) empty() bool { return s.from >= s.to }

// checkTorn returns nil if the bytes after the valid batches can be one torn batch, with unwritten sectors of
// zeros. It follows the lengths declared by the frames, to the end of the batch or to a frame with a header
// of zeros: this header's sector is missing. Otherwise the error has the reason.
func checkTorn(content []byte, rest span, sound batches, base uint64) error {
	batch := tear{content: content, rest: rest, entries: sound.count(), index: base + sound.count()}
	whole, err := batch.follow()
	switch {
	case err != nil:
		return err
	case whole && batch.at < rest.to:
		return fmt.Errorf("the batch at %d has another checksum, and is not the last", rest.from)
	case whole && !batch.missesSector():
		return fmt.Errorf("the batch at %d has another checksum", rest.from)
	case !whole && !batch.isMissing(batch.at):
		return fmt.Errorf("the bytes at %d cannot be read", batch.at)
	case !whole && batch.hasSoundBatch():
		return fmt.Errorf("the bytes at %d cannot be read, and a batch follows", batch.at)
	}
	return nil
}

// tear is an invalid batch.
type tear struct {
	content []byte
	rest    span   // from its begin to the last used byte
	entries uint64 // of the segment, up to at
	index   uint64 // of the next entry
	at      int    // current position
}

// follow steps from frame to frame. It reports whether it has reached the end of the batch.
func (t *tear) follow() (whole bool, err error) {
	for t.at = max(t.rest.from, headerSize); t.at+wordSize <= len(t.content); {
		length := binary.LittleEndian.Uint32(t.content[t.at+4:])
		switch binary.LittleEndian.Uint32(t.content[t.at:]) {
		case uint32(segment.FrameCommit):
			t.at += wordSize
			return true, nil
		case uint32(segment.FrameEntry):
			if !t.isEntry(length) {
				return false, fmt.Errorf("the entry at %d cannot be read", t.at)
			}
			t.entries++
			t.index++
		case uint32(segment.FrameIndex):
			if uint64(length) != t.entries*4 {
				return false, fmt.Errorf("the index at %d cannot be read", t.at)
			}
		default:
			if used(t.content[t.at:t.at+wordSize]) != 0 {
				return false, fmt.Errorf("the bytes at %d cannot be read", t.at)
			}
			return false, nil
		}
		t.at += wordSize + padded(length)
	}
	return false, nil
}

// maxFieldsBefore is the largest size of the fields before an entry's data: index, term, type and the length.
const maxFieldsBefore = 4 * binary.MaxVarintLen64

// isEntry reports whether the entry at t.at can be the next one, with the length in its header. The length is
// stored twice (raft-wal, codec.go). This distinguishes a damaged length from an entry with a missing end.
func (t *tear) isEntry(length uint32) bool {
	if length > segment.MaxEntrySize {
		return false
	}
	from := t.at + wordSize
	if sector := (from + sectorSize - 1) / sectorSize * sectorSize; sector < from+maxFieldsBefore && t.isMissing(sector) {
		return true // some fields are missing
	}
	fields := t.content[min(from, len(t.content)):min(from+maxFieldsBefore, len(t.content))]
	var values [4]uint64
	before := 0
	for i := range values {
		value, size := binary.Uvarint(fields[before:])
		if size <= 0 {
			return false
		}
		values[i] = value
		before += size
	}
	index, data := values[0], int(min(values[3], segment.MaxEntrySize))
	return index == t.index && t.isBehind(from+before+data, int(length)-before-data)
}

// isBehind reports whether size fits the fields after an entry's data: no extensions, and a time of 15 bytes
// (version 1). It has 16 bytes (version 2) in a time zone with a fraction of a minute.
func (t *tear) isBehind(at, size int) bool {
	if at+1 >= len(t.content) || t.isMissing(at+1) {
		return size == 16 || size == 17
	}
	return size == 15+int(t.content[at+1])
}

// isMissing reports whether the batch's part of the sector at an offset is zeros. Bytes after the end of the
// file count as zeros.
func (t *tear) isMissing(at int) bool {
	from := max(at/sectorSize*sectorSize, t.rest.from)
	to := min((at/sectorSize+1)*sectorSize, len(t.content))
	return from >= to || used(t.content[from:to]) == 0
}

func (t *tear) missesSector() bool {
	for at := t.rest.from; at < t.rest.to; at = (at/sectorSize + 1) * sectorSize {
		if t.isMissing(at) {
			return true
		}
	}
	return false
}

// hasSoundBatch reports whether a complete batch follows: its write began after the sync of the one before.
func (t *tear) hasSoundBatch() bool {
	for at := t.rest.from + wordSize; at < t.rest.to; at += wordSize {
		if isSoundBatch(t.content[at:t.rest.to]) {
			return true
		}
	}
	return false
}

// isSoundBatch reports whether the content begins with a valid batch.
func isSoundBatch(content []byte) bool {
	for at := 0; at+wordSize <= len(content); {
		length := binary.LittleEndian.Uint32(content[at+4:])
		switch binary.LittleEndian.Uint32(content[at:]) {
		case uint32(segment.FrameEntry), uint32(segment.FrameIndex):
			at += wordSize + padded(length)
		case uint32(segment.FrameCommit):
			return at > 0 && checksum.Of(content[:at]) == length
		default:
			return false
		}
	}
	return false
}
