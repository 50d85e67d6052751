package differential

import (
	"math/rand/v2"
	"strings"

	"golang.org/x/sys/unix"
)

// Mode selects the calls: see the package.
type Mode string

// The modes.
const (
	Plain     Mode = "plain"
	Exclusive Mode = "exclusive"
	Locks     Mode = "locks"
)

// Modes are all modes.
var Modes = []Mode{Plain, Exclusive, Locks}

// slots is the largest number of open files of a family.
const slots = 3

// Random returns a random sequence of a mode.
func Random(random *rand.Rand, mode Mode, families, steps int) (sequence []Step) {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for len(sequence) < steps {
		at := random.IntN(total)
		for _, k := range kinds {
			if at -= k.weight; at >= 0 {
				continue
			}
			if calls := k.make(&maker{random, mode}); calls != nil {
				sequence = append(sequence, Step{random.IntN(families), calls})
			}
			break
		}
	}
	return sequence
}

// maker makes calls. It makes none if the mode has none.
type maker struct {
	*rand.Rand
	mode Mode
}

func (m *maker) oneIn(n int) bool { return m.IntN(n) == 0 }

func (m *maker) one(of string) string {
	words := strings.Fields(of)
	return words[m.IntN(len(words))]
}

// path returns one of few paths, mostly short. Any part may be a directory, a file, a link or missing.
func (m *maker) path() string {
	path := m.one("f g h f g d")
	for m.oneIn(2) && len(path) < len("d/d/d") {
		path = m.one("d d d e f") + "/" + path
	}
	return path
}

func (m *maker) dir() string {
	return m.one("d d e d/e d/d f .")
}

func (m *maker) fileMode() uint32 { return []uint32{0o644, 0o644, 0o600, 0o444, 0o755}[m.IntN(5)] }

func (m *maker) content() string { return content(m.Rand, m.mode) }

// size returns a size for a truncation. In the mode Exclusive no file becomes empty.
func (m *maker) size() int64 {
	if m.mode == Exclusive {
		return int64(1 + m.IntN(6))
	}
	return int64(m.IntN(7))
}

// exclusive reports whether names may be created exclusively.
func (m *maker) exclusive() bool { return m.mode != Plain }

func some(calls ...Call) []Call { return calls }

// kinds are the kinds of steps with their frequencies.
var kinds = []struct {
	weight int
	make   func(m *maker) []Call
}{
	{22, write},
	{8, replace},
	{6, open},
	{5, func(m *maker) []Call { return some(Call{Op: Write, Slot: m.IntN(slots), Data: m.content()}) }},
	{3, func(m *maker) []Call {
		return some(Call{Op: Pwrite, Slot: m.IntN(slots), At: int64(m.IntN(5)), Data: m.written()})
	}},
	{2, func(m *maker) []Call { return some(Call{Op: Ftruncate, Slot: m.IntN(slots), At: m.size()}) }},
	{4, func(m *maker) []Call { return some(Call{Op: Read, Slot: m.IntN(slots)}) }},
	{2, func(m *maker) []Call { return some(Call{Op: Fstat, Slot: m.IntN(slots)}) }},
	{4, func(m *maker) []Call { return some(Call{Op: Close, Slot: m.IntN(slots)}) }},
	{14, func(m *maker) []Call { return some(Call{Op: Cat, Path: m.path()}) }},
	{6, func(m *maker) []Call { return some(Call{Op: Stat, Path: m.path()}) }},
	{6, func(m *maker) []Call { return some(Call{Op: List, Path: m.dir()}) }},
	{3, func(m *maker) []Call { return some(Call{Op: Truncate, Path: m.path(), At: m.size()}) }},
	{9, func(m *maker) []Call { return some(Call{Op: Rename, Path: m.path(), To: m.path()}) }},
	{3, func(m *maker) []Call { return m.ifExclusive(Call{Op: NoReplace, Path: m.path(), To: m.path()}) }},
	{4, func(m *maker) []Call { return m.ifExclusive(Call{Op: Link, Path: m.path(), To: m.path()}) }},
	{4, func(m *maker) []Call { return m.ifExclusive(Call{Op: Symlink, Path: m.path(), Data: m.target()}) }},
	{3, func(m *maker) []Call { return some(Call{Op: Readlink, Path: m.path()}) }},
	{13, func(m *maker) []Call { return some(Call{Op: Unlink, Path: m.path()}) }},
	{7, func(m *maker) []Call { return some(Call{Op: Mkdir, Path: m.dir(), Mode: 0o755}) }},
	{4, func(m *maker) []Call { return some(Call{Op: Rmdir, Path: m.dir()}) }},
	{1, func(m *maker) []Call { return some(Call{Op: RemoveAll, Path: m.one("d d d e d/e f")}) }},
}

func (m *maker) ifExclusive(calls ...Call) []Call {
	if !m.exclusive() {
		return nil
	}
	return calls
}

// written returns data for a write in a file; empty data would change nothing.
func (m *maker) written() string {
	if m.mode == Exclusive {
		return content(m.Rand, Exclusive)
	}
	return m.content()
}

// target returns the target of a symbolic link. None leads out of the sequence's directory.
func (m *maker) target() string {
	if m.mode == Locks && m.oneIn(3) {
		return ownHost + ":" + ownPID
	}
	return m.one("f g d d/f h nowhere")
}

// write imitates a shell: create, empty or append, then write and close.
func write(m *maker) []Call {
	flags := unix.O_WRONLY | unix.O_CREAT
	switch m.IntN(5) {
	case 0:
		flags |= unix.O_APPEND
	case 1:
		if m.exclusive() {
			flags |= unix.O_EXCL
			break
		}
		fallthrough
	default:
		flags |= unix.O_TRUNC
	}
	slot := m.IntN(slots)
	calls := some(
		Call{Op: Open, Path: m.path(), Slot: slot, Flags: flags, Mode: m.fileMode()},
		Call{Op: Write, Slot: slot, Data: m.content()},
	)
	if m.oneIn(4) {
		return calls
	}
	return append(calls, Call{Op: Close, Slot: slot})
}

// replace writes another file and renames it, like careful programs. The other file is new or a leftover.
func replace(m *maker) []Call {
	slot, path := m.IntN(slots), m.path()
	other := path + ".new"
	return some(
		Call{Op: Open, Path: other, Slot: slot, Flags: unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, Mode: 0o644},
		Call{Op: Write, Slot: slot, Data: m.content()},
		Call{Op: Close, Slot: slot},
		Call{Op: Rename, Path: other, To: path},
	)
}

// open uses any flags. In the mode Exclusive, a file made or emptied is written to at once.
func open(m *maker) []Call {
	flags := []int{unix.O_RDONLY, unix.O_RDWR, unix.O_RDWR, unix.O_WRONLY}[m.IntN(4)]
	for _, flag := range []int{unix.O_CREAT, unix.O_TRUNC, unix.O_APPEND, unix.O_DIRECTORY, unix.O_NOFOLLOW} {
		rare := map[int]int{unix.O_CREAT: 2, unix.O_DIRECTORY: 16}[flag]
		if m.oneIn(max(rare, 4)) && (m.mode != Exclusive || flag != unix.O_CREAT && flag != unix.O_TRUNC) {
			flags |= flag
		}
	}
	if flags&unix.O_CREAT != 0 {
		flags &^= unix.O_DIRECTORY // the combination depends on the kernel's version
		if m.mode == Locks && m.oneIn(2) {
			flags |= unix.O_EXCL
		}
	}
	return some(Call{Op: Open, Path: m.path(), Slot: m.IntN(slots), Flags: flags, Mode: m.fileMode()})
}
