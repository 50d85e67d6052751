package fusefs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"google.golang.org/protobuf/proto"

	"lockfs/fusefs/control"
	"lockfs/fusefs/crashstate"
	"lockfs/fusefs/filelock"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/serve"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// stateVersion rises when an earlier version could not continue from a state, or this one not from an earlier
// state.
const stateVersion = 1

// state is a mount's state outside the cluster and the kernel. The next process finds the rest again: the
// last known content of files, and unread rests of listings.
type state struct {
	Version      int
	Began        time.Duration // when the mount stopped, on CLOCK_BOOTTIME
	Dir          []byte
	Number       uint32
	Init         *serve.Init
	Requests     [][]byte // read and not answered
	Files        []savedFile
	LastFile     uint64
	Dirs         map[uint64]ids.Inode
	LastDir      uint64
	Inodes       []savedInode
	Known        map[ids.Inode]uint64
	Waits        []savedWait
	Control      *control.Saved
	Observations *lookguard.Saved
	Made         []thread.Saved[fuse.Attr] // and opened, by system calls under way
	MadeBefore   []thread.Saved[fuse.Attr] // likewise, by a crashed process: the thread may have asked already
	Walked       []thread.Saved[savedWalk]
	Judged       []thread.Saved[savedJudgement]
	NotesLost    bool   // some notes of threads
	Crashed      uint64 // handles up to this number may be of a crashed process

	crashes   []int64           // of earlier processes, on CLOCK_BOOTTIME
	releasing []crashstate.Lock // by a crashed process
	seen      []byte            // instead of Observations
}

type savedFile struct {
	Handle uint64
	Ino    ids.Inode
	By     [][]byte // storepb.Observation
	How    lookguard.How
	Locks  filelock.SavedDescription
}

// savedInode is a file in use with pins or locks.
type savedInode struct {
	Ino    ids.Inode
	Pinned bool // or possibly pinned
	Kept   bool // the cluster has recorded the pin
	Locks  []filelock.Saved
}

type savedWalk struct {
	Ino  ids.Inode
	Seen [][]byte // storepb.Observation
}

type savedJudgement struct {
	Last, Before savedName
	Again        bool
}

type savedName struct {
	Parent ids.Inode
	Name   []byte
	Ino    ids.Inode
}

// errUntold says that the cluster has not yet recorded all closed files.
var errUntold = errors.New("the cluster has not recorded all closed files yet")

// save is called while no request is under way.
func (fs *dispatcher) save() (*state, error) {
	s := &state{Version: stateVersion, Dirs: make(map[uint64]ids.Inode), Known: fs.known.Save(), Observations: fs.observations.Save()}
	var errWaits error
	s.Waits, errWaits = fs.waits.save()
	if err := errors.Join(s.saveFiles(fs), s.saveCalls(fs), errWaits); err != nil {
		return nil, err
	}
	dirs, last := fs.dirs.All()
	for handle, dir := range dirs {
		s.Dirs[handle] = dir.ino
	}
	s.LastDir, s.Crashed, s.NotesLost = last, fs.crashed, fs.calls.lost
	var err error
	s.Control, err = fs.control.Save()
	return s, err
}

func (s *state) saveFiles(fs *dispatcher) error {
	files, last := fs.files.All()
	s.LastFile = last
	numbers, open := make(map[*filelock.Description]uint64), make(map[ids.Inode]bool)
	for handle, file := range files {
		open[file.inode.ino] = true
		by, err := marshalAll(file.by)
		if err != nil {
			return err
		}
		numbers[&file.locks] = handle
		s.Files = append(s.Files, savedFile{handle, file.inode.ino, by, file.how, file.locks.Save()})
	}
	fs.inodes.mu.Lock()
	defer fs.inodes.mu.Unlock()
	for ino, in := range fs.inodes.byIno {
		locks, done := in.locks.Save(func(d *filelock.Description) (uint64, bool) { handle, found := numbers[d]; return handle, found })
		if !done || !open[ino] || slices.ContainsFunc(locks, func(l filelock.Saved) bool { return len(l.Through) == 0 }) {
			return errUntold
		}
		if in.pinned || len(locks) > 0 {
			s.Inodes = append(s.Inodes, savedInode{Ino: ino, Pinned: in.pinned, Kept: in.kept, Locks: locks})
		}
	}
	return nil
}

func (s *state) saveCalls(fs *dispatcher) error {
	for _, c := range fs.calls.created.Save() {
		saved := thread.Saved[fuse.Attr]{Thread: c.Thread, Value: c.Value.attr, At: c.At}
		if c.Value.before {
			s.MadeBefore = append(s.MadeBefore, saved)
		} else {
			s.Made = append(s.Made, saved)
		}
	}
	for _, w := range fs.calls.walked.Save() {
		seen, err := marshalAll(w.Value.seen)
		if err != nil {
			return err
		}
		s.Walked = append(s.Walked, thread.Saved[savedWalk]{Thread: w.Thread, Value: savedWalk{w.Value.ino, seen}, At: w.At})
	}
	saveName := func(r resolved) savedName { return savedName{r.name.parent, []byte(r.name.name), r.ino} }
	for _, j := range fs.judgements.Save() {
		value := savedJudgement{saveName(j.Value.last), saveName(j.Value.before), j.Value.again}
		s.Judged = append(s.Judged, thread.Saved[savedJudgement]{Thread: j.Thread, Value: value, At: j.At})
	}
	return nil
}

// restore is for a new file system, which the kernel has not used yet.
func (fs *dispatcher) restore(s *state) error {
	fs.crashed, fs.calls.lost, fs.judgements.lost = s.Crashed, s.NotesLost, s.NotesLost
	if err := errors.Join(s.restoreFiles(fs), s.restoreCalls(fs), fs.control.Restore(s.Control)); err != nil {
		return err
	}
	dirs := make(map[uint64]*dirHandle)
	for handle, ino := range s.Dirs {
		dirs[handle] = &dirHandle{ino: ino}
	}
	fs.dirs.Restore(dirs, s.LastDir)
	fs.known.Restore(s.Known)
	if s.Observations != nil {
		fs.observations.Restore(s.Observations)
	} else {
		fs.observations.Replay(s.seen)
	}
	fs.releaseLeft(s.releasing)
	return nil
}

func (s *state) restoreFiles(fs *dispatcher) error {
	files := make(map[uint64]*fileHandle)
	for _, saved := range s.Files {
		by, err := unmarshalAll(saved.By)
		if err != nil {
			return err
		}
		file := &fileHandle{inode: fs.inodes.use(saved.Ino), by: by, how: saved.How}
		file.locks.Restore(saved.Locks)
		fs.keep(saved.Handle, file)
		files[saved.Handle] = file
	}
	fs.files.Restore(files, s.LastFile)
	for _, saved := range s.Inodes {
		in, isUsed := fs.inodes.byIno[saved.Ino]
		if !isUsed {
			return fmt.Errorf("inode %d is not open and yet known", saved.Ino)
		}
		in.pinned, in.kept = saved.Pinned, saved.Kept
		for _, lock := range saved.Locks {
			var through []*filelock.Description
			for _, handle := range lock.Through {
				if file := files[handle]; file != nil {
					through = append(through, &file.locks)
				}
			}
			if len(through) == 0 {
				return fmt.Errorf("a lock of inode %d has no open file", saved.Ino)
			}
			in.locks.Restore(lock, through)
		}
	}
	return fs.restoreWaits(s.Waits, files)
}

func (s *state) restoreCalls(fs *dispatcher) error {
	restoreMade := func(all []thread.Saved[fuse.Attr], before bool) {
		for _, c := range all {
			fs.calls.created.Restore([]thread.Saved[made]{{Thread: c.Thread, Value: made{c.Value, before}, At: c.At}})
		}
	}
	restoreMade(s.Made, false)
	restoreMade(s.MadeBefore, true)
	var walks []thread.Saved[walked]
	for _, w := range s.Walked {
		seen, err := unmarshalAll(w.Value.Seen)
		if err != nil {
			return err
		}
		walks = append(walks, thread.Saved[walked]{Thread: w.Thread, Value: walked{w.Value.Ino, seen}, At: w.At})
	}
	fs.calls.walked.Restore(walks)
	restoreName := func(n savedName) resolved { return resolved{name{n.Parent, string(n.Name)}, n.Ino} }
	var judgements []thread.Saved[judged]
	for _, j := range s.Judged {
		value := judged{restoreName(j.Value.Last), restoreName(j.Value.Before), j.Value.Again}
		judgements = append(judgements, thread.Saved[judged]{Thread: j.Thread, Value: value, At: j.At})
	}
	fs.judgements.Restore(judgements)
	return nil
}

func marshalAll(observations []*storepb.Observation) (all [][]byte, err error) {
	for _, o := range observations {
		one, err := proto.Marshal(o)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func unmarshalAll(all [][]byte) (observations []*storepb.Observation, err error) {
	for _, one := range all {
		o := new(storepb.Observation)
		if err := proto.Unmarshal(one, o); err != nil {
			return nil, err
		}
		observations = append(observations, o)
	}
	return observations, nil
}

func parseState(data []byte) (*state, error) {
	s := new(state)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("it is of version %d, and this program knows %d: %w", s.Version, stateVersion, syscall.EPROTONOSUPPORT)
	}
	if s.Init == nil {
		return nil, errors.New("it lacks the mount's settings with the kernel")
	}
	return s, nil
}

// whole returns a lock of the whole file: all that an owner may have.
func whole(lock crashstate.Lock, through ...uint64) filelock.Saved {
	return filelock.Saved{Kind: lock.Kind, Owner: lock.Number, Through: through, Ranges: [][2]uint64{{0, math.MaxInt64}}}
}

// releaseLeft repeats the releases of a crashed process, of which the cluster may not know.
func (fs *fileSystem) releaseLeft(locks []crashstate.Lock) {
	for _, lock := range locks {
		in, key, caller := fs.inodes.use(lock.Ino), filelock.Owner{Kind: lock.Kind, Number: lock.Number}, new(storepb.Caller)
		lost := lock.Handle == crashstate.Lost
		fs.insistLater(caller, dropOp(in, key, lost), fs.afterDrop(caller, in, in.locks.DropLeft(key, lost)))
	}
}
