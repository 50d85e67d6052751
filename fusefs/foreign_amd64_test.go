package fusefs

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/orphanreply"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// programOf32Bits opens the file that it is told, reads it if that is what it is opened for, and exits with
// the error number.
func programOf32Bits(t *testing.T, flags uint32) (path string) {
	t.Helper()
	code := []byte{0x8b, 0x5c, 0x24, 0x08, 0xb9} // mov ebx, [esp+8]; mov ecx, flags
	code = binary.LittleEndian.AppendUint32(code, flags)
	code = append(code,
		0xba, 0xa4, 0x01, 0, 0, // mov edx, 0644
		0xb8, 5, 0, 0, 0, // mov eax, open
		0xcd, 0x80, // int 0x80
	)
	if flags == unix.O_RDONLY {
		code = append(code,
			0x89, 0xc3, // mov ebx, eax
			0x81, 0xec, 0, 4, 0, 0, // sub esp, 0x400
			0x89, 0xe1, // mov ecx, esp
			0xba, 0, 4, 0, 0, // mov edx, 0x400
			0xb8, 3, 0, 0, 0, // mov eax, read
			0xcd, 0x80, // int 0x80
		)
	}
	code = append(code,
		0x31, 0xdb, // xor ebx, ebx
		0x85, 0xc0, // test eax, eax
		0x79, 0x04, // jns over the next two
		0xf7, 0xd8, // neg eax
		0x89, 0xc3, // mov ebx, eax
		0xb8, 1, 0, 0, 0, // mov eax, exit
		0xcd, 0x80, // int 0x80
	)
	const start = 0x08048000
	header := elf.Header32{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: uint32(elf.EV_CURRENT), Phnum: 1,
	}
	segment := elf.Prog32{Type: uint32(elf.PT_LOAD), Vaddr: start, Flags: uint32(elf.PF_R | elf.PF_X), Align: 0x1000}
	header.Ehsize, header.Phentsize = uint16(binary.Size(header)), uint16(binary.Size(segment))
	header.Phoff = uint32(header.Ehsize)
	header.Entry = start + header.Phoff + uint32(header.Phentsize)
	segment.Filesz = header.Entry - start + uint32(len(code))
	segment.Memsz = segment.Filesz
	program := new(bytes.Buffer)
	for _, part := range []any{header, segment, code} {
		require.NoError(t, binary.Write(program, binary.LittleEndian, part))
	}
	path = filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, program.Bytes(), 0o700))
	require.NotErrorIs(t, exec.Command(path).Run(), unix.ENOEXEC, "this kernel runs no programs of 32 bits (CONFIG_IA32_EMULATION)")
	return path
}

// TestAMakerOf32BitsIsToldAfterACrash too, though the number of its system call is that of another one in
// this program's table. As it may be in fstat(2) as well, that is so for a few seconds only.
func TestAMakerOf32BitsIsToldAfterACrash(t *testing.T) {
	program := programOf32Bits(t, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	makeLock := func(path string) error { return exec.Command(program, path).Run() }
	require.NoError(t, makeAcrossACrash(t, -time.Hour, makeLock))
	exit := new(exec.ExitError)
	require.ErrorAs(t, makeAcrossACrash(t, time.Hour, makeLock), &exit)
	require.Equal(t, int(unix.ETIMEDOUT), exit.ExitCode())
}

// TestWhatAProgramOf32BitsSawIsKnownAfterACrash as what others did: it removes no other lock than that.
func TestWhatAProgramOf32BitsSawIsKnownAfterACrash(t *testing.T) {
	program := programOf32Bits(t, unix.O_RDONLY)
	readAcrossACrash(t, func(string) {}, func(path string) error { return exec.Command(program, path).Run() })
}

// TestAMakerOf32BitsIsWaitedFor when a mount ends, as long as it may be in its open(2) still.
func TestAMakerOf32BitsIsWaitedFor(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	m := mountAt(t, t.TempDir(), newCluster().open(), Options{})
	_, err := m.HandOver(5 * time.Second)
	require.NoError(t, err)
	for _, row := range []struct {
		age, pause time.Duration
		waits      bool
	}{{0, 0, true}, {time.Second, 0, false}, {time.Hour, time.Hour, true}} {
		maker := exec.Command(programOf32Bits(t, unix.O_RDONLY), fifo)
		require.NoError(t, maker.Start())
		t.Cleanup(func() { _ = maker.Process.Kill() })
		var header fuse.InHeader
		header.Pid = uint32(maker.Process.Pid)
		told := orphanreply.Create(&header, 1)(&storepb.Result{Created: true, Attr: &storepb.Attr{Ino: 77}})
		eventually(t, "it waits in its open(2)", func() bool {
			call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", header.Pid))
			return err == nil && bytes.HasPrefix(call, []byte("5 "))
		})
		began := time.Now()
		binary.NativeEndian.PutUint64(told, uint64(hostinfo.BootTime()-row.age))
		orphanreply.FinishAfter(row.pause, m.connection.Device, [][]byte{told})
		require.Equal(t, row.waits, time.Since(began) >= time.Second, row.age)
		require.NoError(t, maker.Process.Kill())
		require.Error(t, maker.Wait())
	}
	require.NoError(t, m.connection.End())
}
