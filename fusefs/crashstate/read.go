package crashstate

import (
	"encoding/binary"
	"errors"
	"os"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Left is the crash state of a crashed process.
type Left struct {
	Mount      []byte // as given to New
	Crashes    []int64
	Incomplete bool
	Files      []File
	Locks      []Lock
	Seen       []byte // the text of its lookguard.Log
}

// File is an open file.
type File struct {
	Handle  uint64
	Ino     ids.Inode
	Session ids.Session // of its locks; 0: none
	Name    []byte      // at the open
}

// Lock is an owner with possible locks.
type Lock struct {
	Owner
	Handle uint64 // of its last request, or Released, or Lost
}

// Is reports whether data (see [Load]) is a crash state.
func Is(data []byte) bool { return len(data) >= size && word(data, atMagic) == magic }

// Read decodes a crash state.
func Read(data []byte) (*Left, error) {
	length := word(data, atLength)
	if length > atFiles-atMount {
		return nil, errors.New("the saved state of the mount is damaged")
	}
	left := &Left{Mount: data[atMount : atMount+int(length)], Incomplete: word(data, atIncomplete) != 0, Seen: data[size : size+seenIn(data)]}
	names := data[size+len(left.Seen):]
	for i := range mostCrashes {
		if at := word(data, atCrashes+8*i); at != 0 {
			left.Crashes = append(left.Crashes, int64(at))
		}
	}
	for n := range room {
		if at := atFiles + n*slot; word(data, at) != 0 {
			length := min(word(data, at+24), uint64(len(names)))
			left.Files = append(left.Files, File{word(data, at), ids.Inode(word(data, at+8)), ids.Session(word(data, at+16)), names[:length]})
			names = names[length:]
		}
		if at := atLocks + n*slot; word(data, at+lockState) != 0 {
			left.Locks = append(left.Locks, Lock{
				Owner{ids.Inode(word(data, at+lockInode)), storepb.LockKind(word(data, at+lockState) >> 32), ids.Owner(word(data, at+lockOwner))},
				word(data, at+lockHandle),
			})
		}
	}
	return left, nil
}

// seenIn returns the length of the observations, which follow the first part of data.
func seenIn(data []byte) int { return min(int(word(data, atSeen)>>32), mostText, len(data)-size) }

func word(data []byte, at int) uint64 { return binary.NativeEndian.Uint64(data[at:]) }

// MayGoOn records the crash of a crash state's process, at a time on CLOCK_BOOTTIME, and reports whether
// another process may continue. It returns false for an incomplete one, or after too many crashes of the
// mount within a limit of time.
func MayGoOn(left *os.File, now, limit time.Duration) (bool, error) {
	header := make([]byte, atMount)
	if _, err := left.ReadAt(header, 0); err != nil {
		return false, err
	}
	oldest, at := now, 0
	for i := range mostCrashes {
		if crash := time.Duration(word(header, atCrashes+8*i)); crash < oldest {
			oldest, at = crash, i
		}
	}
	if _, err := left.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(now)), int64(atCrashes+8*at)); err != nil {
		return false, err
	}
	return word(header, atIncomplete) == 0 && (oldest == 0 || now-oldest > limit), nil
}
