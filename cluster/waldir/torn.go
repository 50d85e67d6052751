package waldir

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/hashicorp/raft-wal/segment"
)

// sectorSize is the least that a disk writes as a whole.
const sectorSize = 512

// span is part of a file.
type span struct{ from, to int }

func (s span) empty() bool { return s.from >= s.to }

// isTorn tells whether what could not be read may be there in part because the machine stopped while it was written: one
// batch, of which some sectors are missing, be it at its end.
func isTorn(content []byte, rest span) bool {
	if hasSoundBatch(content, rest) {
		return false
	}
	for from := rest.from; from < rest.to; {
		to := min((from/sectorSize+1)*sectorSize, rest.to)
		if used(content[from:to]) == 0 {
			return true
		}
		from = to
	}
	return rest.to%sectorSize == 0 && !isCommit(content[rest.to-wordSize:])
}

// hasSoundBatch tells whether a whole batch follows on what could not be read: that was written, and had been before.
func hasSoundBatch(content []byte, rest span) bool {
	after := -1 // the last thing that looks like the end of a batch
	for at := rest.from; at < rest.to; at += wordSize {
		if !isCommit(content[at:]) {
			continue
		}
		if after >= 0 && crc32.Checksum(content[after:at], castagnoli) == binary.LittleEndian.Uint32(content[at+4:]) {
			return true
		}
		after = at + wordSize
	}
	return false
}

func isCommit(word []byte) bool {
	return binary.LittleEndian.Uint32(word) == uint32(segment.FrameCommit)
}
