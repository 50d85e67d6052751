package observation

import (
	"encoding/binary"
	"time"

	"lockfs/raftstore/ids"
)

// Log is where all that is remembered is written down too, for whoever serves the mount should this process be killed: nobody is let
// off what he saw by that.
type Log interface {
	// Append adds to it, and answers false once it is so long that it is to be replaced.
	Append(text []byte) bool
	// Replace begins anew with a text.
	Replace(text []byte)
}

// A log begins with when its memory began, on CLOCK_BOOTTIME; then come records and the names that they are about.
type record struct {
	What   uint8
	Seen   uint8 // bits of what is known of it
	Length uint16
	UID    uint32
	PID    int64
	Start  uint64
	Parent ids.Inode
	Token  ids.Token
	At     time.Duration
}

const (
	saw = iota + 1
	forgot

	isDirectory = 1
	isMade      = 2
	isEmpty     = 4
)

func appendSeen(text []byte, process Process, uid uint32, key Name, seen observed) []byte {
	r := record{What: saw, UID: uid, PID: int64(process.PID), Start: process.Start, Token: seen.token, At: seen.at}
	for bit, is := range map[uint8]bool{isDirectory: seen.directory, isMade: seen.made, isEmpty: seen.empty} {
		if is {
			r.Seen |= bit
		}
	}
	return appendRecord(text, r, key)
}

func appendRecord(text []byte, r record, key Name) []byte {
	r.Parent, r.Length = key.Parent, uint16(len(key.Name))
	text, _ = binary.Append(text, binary.NativeEndian, &r) // its fields have fixed sizes
	return append(text, key.Name...)
}
