package wal

import (
	"encoding/binary"

	"github.com/hashicorp/raft-wal/segment"

	"lockfs/raftstore/checksum"
)

// The format of a segment file (raft-wal, segment/format.go): a header, then frames that each take up whole words. A
// batch is entries, perhaps an index of all entries, and a commit with the checksum of all since the last one.
const (
	headerSize = 32
	versionAt  = 7 // in the header, after the magic number; this is version 0
	wordSize   = 8
	magic      = 0x58eb6b0d
)

// batches is what the sound batches of a segment hold.
type batches struct {
	end        int    // of the last one
	entries    []int  // where the frames of the entries in them begin
	indexStart uint64 // where the index begins in the last one; 0: there is none
}

// count is the number of entries.
func (b batches) count() uint64 { return uint64(len(b.entries)) }

// readBatches goes through the batches of a segment as far as they are sound.
func readBatches(content []byte) batches {
	var sound, read batches
	batch := 0 // where it begins
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

// used is the size of a content without the zeros at its end, in whole words.
func used(content []byte) int {
	size := len(content)
	for size > 0 && content[size-1] == 0 {
		size--
	}
	return padded(uint32(size))
}
