package lookguard

import (
	"encoding/binary"
	"time"

	"lockfs/raftstore/ids"
)

// Log is a copy of the memory, for the mount's next process after a crash: all guards stay effective.
type Log interface {
	// Append adds to the log, and returns false once it is so long that the caller must replace it.
	Append(text []byte) bool
	// Replace starts a new log with a text.
	Replace(text []byte)
}

// A log begins with its memory's begin, on CLOCK_BOOTTIME. Then come records, each with a name.
type record struct {
	What   uint8
	Seen   uint8 // bits of the observation
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
	text, _ = binary.Append(text, binary.NativeEndian, &r) // fixed sizes: no error
	return append(text, key.Name...)
}
