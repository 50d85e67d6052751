package wal

import (
	"encoding/binary"

	"github.com/hashicorp/raft-wal/segment"

	"lockfs/raftstore/checksum"
)

// Format of a segment file (raft-wal, segment/format.go): a header, then frames, each a multiple of a word. A
// batch has entries, optionally an index of all entries, and a commit with the checksum of everything since
// the last commit.
const (
	headerSize = 32
	versionAt  = 7 // offset in the header, after the magic number; this is version 0
	wordSize   = 8
	magic      = 0x58eb6b0d
)

// batches describes the valid batches of a segment.
type batches struct {
	end        int    // of the last batch
	entries    []int  // offsets of the frames of their entries
	indexStart uint64 // offset of the index in the last batch; 0: none
}

// count returns the number of entries.
func (b batches) count() uint64 { return uint64(len(b.entries)) }

// readBatches reads a segment up to the first invalid batch.
func readBatches(content []byte) batches {
	var sound, read batches
	batch := 0 // its begin
	for at := headerSize; at+wordSize <= len(content); {
		length := binary.LittleEndian.Uint32(content[at+4:])
		next := at + wordSize
		switch word := binary.LittleEndian.Uint32(content[at:]); word {
		case uint32(segment.FrameEntry):
			read.entries = append(read.entries, at)
			next += padded(length)
		case uint32(segment.FrameIndex):
			read.indexStart = uint64(next)
			next += padded(length)
		case uint32(segment.FrameCommit):
			if checksum.Of(content[batch:at]) != length {
				return sound
			}
			read.end, batch = next, next
			sound = read
		default:
			return sound
		}
		if next > len(content) {
			return sound
		}
		at = next
	}
	return sound
}

func padded(length uint32) int { return (int(length) + wordSize - 1) / wordSize * wordSize }

// used returns the size without the zeros at the end, in whole words.
func used(content []byte) int {
	size := len(content)
	for size > 0 && content[size-1] == 0 {
		size--
	}
	return padded(uint32(size))
}
