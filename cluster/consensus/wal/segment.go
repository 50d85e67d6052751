package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft-wal/types"
)

// Errors of sound segments.
var (
	errNewer     = errors.New("a newer version wrote it: update this node")
	errMisplaced = errors.New("it is another segment than the one that belongs there: put that one back")
)

// checkHeader checks for the expected segment.
func checkHeader(content []byte, info types.SegmentInfo) error {
	word := binary.LittleEndian.Uint64
	switch {
	case len(content) < headerSize || binary.LittleEndian.Uint32(content) != magic:
		return errMisplaced
	case word(content) != magic:
		return fmt.Errorf("version %d of the format: %w", content[versionAt], errNewer)
	case word(content[8:]) != info.BaseIndex || word(content[16:]) != info.ID || word(content[24:]) != info.Codec:
		return errMisplaced
	}
	return nil
}

// checkSealed checks a segment closed for appends.
func checkSealed(content []byte, info types.SegmentInfo) error {
	sound := readBatches(content)
	if sound.end > 0 {
		if err := checkHeader(content, info); err != nil {
			return err
		}
	}
	if rest := used(content[sound.end:]); rest > 0 {
		return fmt.Errorf("the bytes at %d cannot be read", sound.end)
	}
	if has := info.BaseIndex + sound.count(); has <= info.MaxIndex || sound.indexStart != info.IndexStart {
		return fmt.Errorf("it has entries up to %d, and its index at %d, in place of %d and %d",
			has-1, sound.indexStart, info.MaxIndex, info.IndexStart)
	}
	return nil
}

// tail describes the segment open for appends.
type tail struct {
	last       uint64 // index of the last entry; 0: none
	indexStart uint64 // 0: not sealed
	torn       span   // the incomplete last batch, to be wiped
}

// checkTail checks the segment open for appends.
func checkTail(content []byte, info types.SegmentInfo) (tail, error) {
	if len(content) < int(info.SizeLimit) {
		return tail{}, fmt.Errorf("it has %d bytes, and was made with %d", len(content), info.SizeLimit)
	}
	content = append(content[:len(content):len(content)], make([]byte, padded(uint32(len(content)))-len(content))...)
	sound := readBatches(content)
	err := checkHeader(content, info)
	switch {
	case err == nil:
	case sound.end > 0:
		return tail{}, err
	case used(content[:min(headerSize, len(content))]) > 0:
		return tail{}, errors.New("its header cannot be read")
	}
	has := tail{indexStart: sound.indexStart}
	if sound.count() > 0 {
		has.last = info.BaseIndex + sound.count() - 1
	}
	rest := span{sound.end, sound.end + used(content[sound.end:])}
	if rest.empty() {
		return has, nil
	}
	if sound.indexStart != 0 {
		return tail{}, fmt.Errorf("something stands at %d, behind its end", rest.from)
	}
	has.torn = rest
	return has, checkTorn(content, rest, sound, info.BaseIndex)
}
