package fusefs

import (
	"slices"
	"time"

	"lockfs/fusefs/control"
	"lockfs/fusefs/crashstate"
	"lockfs/fusefs/filelock"
	"lockfs/fusefs/inotify"
	"lockfs/fusefs/orphanreply"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"

	"google.golang.org/protobuf/proto"
)

// stateOf converts the crash state of a crashed process into a state. It assumes the most for missing parts:
// each owner of locks may have the whole file, and each inode may be pinned. answers contain the creations of
// system calls which may still be under way.
func stateOf(left []byte, answers [][]byte) (*state, error) {
	e, err := crashstate.Read(left)
	if err != nil {
		return nil, err
	}
	s, err := parseState(e.Mount)
	if err != nil {
		return nil, err
	}
	// Numbers rise more slowly than nanoseconds: those from here on are unused by the crashed process.
	past := uint64(hostinfo.BootTime())
	s.LastFile, s.LastDir, s.Crashed, s.NotesLost = past, past, past, true
	s.Control = control.Forgotten(past)
	s.seen = e.Seen
	s.crashes, s.Began = e.Crashes, hostinfo.BootTime()
	s.MadeBefore = orphanreply.Creations(answers)
	if len(e.Crashes) > 0 {
		s.Began = time.Duration(slices.Max(e.Crashes))
	}
	s.Known = make(map[ids.Inode]uint64)
	for ino := range inotify.Inodes(s.Number) {
		s.Known[ino] = 1 // or more: the kernel forgets all at once
	}
	inodes := make(map[ids.Inode]*savedInode)
	of := make(map[uint64]ids.Inode)
	for _, file := range e.Files {
		by, err := unpackNames(file.Name)
		if err != nil {
			return nil, err
		}
		s.Files = append(s.Files, savedFile{Handle: file.Handle, Ino: file.Ino, By: by, Locks: filelock.SavedDescription{Session: file.Session}})
		inodes[file.Ino] = &savedInode{Ino: file.Ino, Pinned: true}
		of[file.Handle] = file.Ino
		s.Known[file.Ino] = 1
	}
	for _, lock := range e.Locks {
		in := inodes[lock.Ino]
		if in == nil || of[lock.Handle] != lock.Ino { // closed, or none
			s.releasing = append(s.releasing, lock)
			continue
		}
		in.Locks = append(in.Locks, whole(lock, lock.Handle))
	}
	for _, in := range inodes {
		s.Inodes = append(s.Inodes, *in)
	}
	return s, nil
}

func unpackNames(text []byte) ([][]byte, error) {
	packed := new(storepb.Result)
	if err := proto.Unmarshal(text, packed); err != nil {
		return nil, err
	}
	return marshalAll(packed.GetObservations())
}
