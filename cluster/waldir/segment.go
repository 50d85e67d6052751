package waldir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// The format of a segment file (raft-wal, segment/format.go): a header, then frames that each take up whole words. A
// batch is entries, perhaps an index of all entries, and a commit with the checksum of all since the last one.
const (
	headerSize = 32
	wordSize   = 8
	magic      = 0x58eb6b0d
)

// batches is what the sound batches of a segment hold.
type batches struct {
	end        int    // of the last one
	entries    uint64 // in them
	indexStart uint64 // where the index begins in the last one; 0: there is none
}

// readBatches goes through the batches of a segment as far as they are sound.
func readBatches(content []byte) batches {
	var sound, read batches
	batch := 0 // where it begins
	for at := headerSize; at+wordSize <= len(content); {
		length := binary.LittleEndian.Uint32(content[at+4:])
		next := at + wordSize
		switch word := binary.LittleEndian.Uint32(content[at:]); word {
		case uint32(segment.FrameEntry):
			read.entries++
			next += padded(length)
		case uint32(segment.FrameIndex):
			read.indexStart = uint64(next)
			next += padded(length)
		case uint32(segment.FrameCommit):
			if crc32.Checksum(content[batch:at], castagnoli) != length {
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

// checkHeader tells whether a segment is the one that is expected in its place.
func checkHeader(content []byte, info types.SegmentInfo) error {
	word := binary.LittleEndian.Uint64
	if len(content) < headerSize || word(content) != magic || word(content[8:]) != info.BaseIndex ||
		word(content[16:]) != info.ID || word(content[24:]) != info.Codec {
		return errors.New("its header is another one")
	}
	return nil
}

// checkSealed checks a segment to which nothing is added any more.
func checkSealed(content []byte, info types.SegmentInfo) error {
	if err := checkHeader(content, info); err != nil {
		return err
	}
	sound := readBatches(content)
	if rest := used(content[sound.end:]); rest > 0 {
		return fmt.Errorf("what stands at %d cannot be read", sound.end)
	}
	if has := info.BaseIndex + sound.entries; has <= info.MaxIndex || sound.indexStart != info.IndexStart {
		return fmt.Errorf("it has entries up to %d, and its index at %d, in place of %d and %d",
			has-1, sound.indexStart, info.MaxIndex, info.IndexStart)
	}
	return nil
}

// checkTail checks the segment to which entries are added, and answers its last entry, 0 if it has none. torn is what is
// there of a batch that was being written, and is to be wiped.
func checkTail(content []byte, info types.SegmentInfo) (last uint64, torn span, err error) {
	content = content[:len(content)/wordSize*wordSize]
	if len(content) < int(info.SizeLimit) {
		return 0, span{}, fmt.Errorf("it has %d bytes, and was made with %d", len(content), info.SizeLimit)
	}
	sound := readBatches(content)
	if sound.end > 0 {
		if err := checkHeader(content, info); err != nil {
			return 0, span{}, err
		}
	}
	if sound.entries > 0 {
		last = info.BaseIndex + sound.entries - 1
	}
	rest := span{sound.end, sound.end + used(content[sound.end:])}
	if rest.empty() {
		return last, span{}, nil
	}
	if !isTorn(content, rest) {
		return 0, span{}, fmt.Errorf("what stands at %d cannot be read", rest.from)
	}
	return last, rest, nil
}

// used is the size of a content without the zeros at its end, in whole words.
func used(content []byte) int {
	size := len(content)
	for size > 0 && content[size-1] == 0 {
		size--
	}
	return padded(uint32(size))
}
