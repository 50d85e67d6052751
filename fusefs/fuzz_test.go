package fusefs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/fusefs/crashstate"
	"lockfs/test/fuzzing"
)

// FuzzState reads what a process hands over to another program, which may be of another version.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"Version":1,"Init":{},"Files":[{"Handle":1,"Ino":2}],"Inodes":[{"Ino":2,"Pinned":true}]}`))
	f.Add([]byte(`{}`))
	fuzzing.Run(f, func(_ *testing.T, data []byte) {
		_, _ = parseState(data)
		_ = Fits(data)
	})
}

// FuzzEstate reads what is left of a process that was killed: parts of its memory, as they were written last.
func FuzzEstate(f *testing.F) {
	e, err := crashstate.New([]byte(`{"Version":1,"Init":{}}`), []int64{5})
	require.NoError(f, err)
	e.Opened(7, 70, nil).Store(3)
	e.Locks(crashstate.Owner{Ino: 70, Number: 9}, 7)
	e.Locks(crashstate.Owner{Number: 9}, 8) // of no inode, through what is not open
	e.Replace([]byte("seen"))
	data, err := crashstate.Load(e.File())
	require.NoError(f, err)
	// Where there is something in it, by what the layout of package crashstate says.
	const files, slot, room = 64 << 10, 32, 1 << 17
	const locks, mount = files + room*slot, 4096
	f.Add(data[:128], data[128:136], data[mount:mount+64], data[files:files+2*slot], data[locks:locks+2*slot], []byte("seen"))
	const size = locks + room*slot
	memory := make([]byte, size, size+1<<20)
	fuzzing.Run(f, func(_ *testing.T, header, seen, of, opened, locked, text []byte) {
		var written [][]byte
		for _, part := range []struct {
			from, to int
			is       []byte
		}{{0, 128, header}, {128, 136, seen}, {mount, files, of}, {files, locks, opened}, {locks, size, locked}} {
			at := memory[part.from:part.to]
			written = append(written, at[:copy(at, part.is)])
		}
		if left := append(memory, text...); crashstate.Is(left) {
			_, _ = stateOf(left, nil)
		}
		for _, part := range written {
			clear(part)
		}
	})
}
