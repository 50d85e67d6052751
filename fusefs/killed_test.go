package fusefs

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/orphanreply"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// stuck is an Operator of which creations wait until they are let go or given up.
type stuck struct {
	*session
	begun   chan struct{}
	proceed chan struct{}
	ended   chan error // of the context of each
}

// telling is an Operator that keeps what the kernel is told of a creation.
type telling struct {
	*session
	told []byte
}

func (o *telling) Create(
	ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, error) {
	return o.session.Create(ctx, caller, op, func(result *storepb.Result) []byte {
		o.told = answer(result)
		return o.told
	})
}

// TestAnswersAreFinishedBesideWhoExecutesAProgram: the kernel tells nothing of a thread in execve(2) that
// closes files of a mount, each of which waits for an answer.
func TestAnswersAreFinishedBesideWhoExecutesAProgram(t *testing.T) {
	dir, ops := t.TempDir(), &telling{session: newCluster().open()}
	m := mountAt(t, dir, ops, Options{})
	maker := startChild(t, "maker", filepath.Join(dir, "lock"))
	_, err := m.HandOver(5 * time.Second)
	require.NoError(t, err)
	require.NoError(t, maker.stdin.Close())
	eventually(t, "it closes the file", func() bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(m.connection.Device.Fd()), Events: unix.POLLIN}}, 0)
		return err == nil && n == 1
	})
	binary.NativeEndian.PutUint64(ops.told, uint64(hostinfo.BootTime())) // just now, however long that took
	finished := make(chan struct{})
	go func() {
		orphanreply.Finish(m.connection.Device, [][]byte{ops.told})
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(30 * time.Second):
		require.Fail(t, "it waits for the program that waits for it")
	}
	require.NoError(t, m.connection.End())
}

// TestACreationIsToldHoweverLateItsMakerAsks has a mount end between the two requests of an open(2), long
// after the first was answered, and, as the same is asked for, in a later fstat(2).
func TestACreationIsToldHoweverLateItsMakerAsks(t *testing.T) {
	for _, row := range []struct {
		asks, says string
		answered   int // of its requests for attributes, before the mount ends
		age, pause time.Duration
	}{
		{"open", "opened", 0, 10 * time.Second, 0},
		{"open", "opened", 0, time.Hour, time.Hour - time.Second},       // for which somebody waited who would have answered
		{"open", strconv.Itoa(int(unix.ECONNABORTED)), 0, time.Hour, 0}, // of another boot, or nearly
		{"fstat", "opened\n" + strconv.Itoa(int(unix.ECONNABORTED)), 1, 10 * time.Second, 0},
	} {
		t.Run(fmt.Sprintf("%s after %s less %s", row.asks, row.age, row.pause), func(t *testing.T) {
			dir := t.TempDir()
			m := mountAt(t, dir, newCluster().open(), Options{})
			_, err := m.HandOver(5 * time.Second)
			require.NoError(t, err)
			device := m.connection.Device
			maker := exec.Command("python3", "-c", `
import os, sys
try:
    fd = os.open(sys.argv[1], os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    print("opened")
    if sys.argv[2] == "fstat":
        os.fstat(fd)
except OSError as e:
    print(e.errno)`, filepath.Join(dir, "lock"), row.asks)
			said := new(strings.Builder)
			maker.Stdout = said
			require.NoError(t, maker.Start())
			t.Cleanup(func() { _ = maker.Process.Kill() })

			const file = 77
			var told []byte
			awaitRequest := func() {
				eventually(t, "it asks", func() bool {
					n, err := unix.Poll([]unix.PollFd{{Fd: int32(device.Fd()), Events: unix.POLLIN}}, 0)
					return err == nil && n == 1
				})
			}
			for answered := 0; told == nil || answered < row.answered; {
				awaitRequest()
				request := make([]byte, fuseattr.MaxWrite+fuseattr.BlockSize)
				n, err := unix.Read(int(device.Fd()), request)
				require.NoError(t, err)
				var header fuse.InHeader
				_, err = binary.Decode(request[:n], binary.NativeEndian, &header)
				require.NoError(t, err)
				reply := func(status int32, body any) {
					out := fuse.OutHeader{Unique: header.Unique, Status: status}
					out.Length = uint32(binary.Size(out) + binary.Size(body))
					packed, err := binary.Append(nil, binary.NativeEndian, out)
					require.NoError(t, err)
					packed, err = binary.Append(packed, binary.NativeEndian, body)
					require.NoError(t, err)
					_, err = unix.Write(int(device.Fd()), packed)
					require.NoError(t, err)
				}
				attr := &storepb.Attr{Ino: header.NodeId, Mode: unix.S_IFDIR | 0o755, Nlink: 2}
				switch header.Opcode {
				case 35: // FUSE_CREATE
					attr.Ino, attr.Mode, attr.Nlink = file, unix.S_IFREG|0o644, 1
					told = orphanreply.Create(&header, 1)(&storepb.Result{Created: true, Attr: attr})
					var out fuse.CreateOut
					_, err := binary.Decode(told[16+binary.Size(fuse.OutHeader{}):], binary.NativeEndian, &out)
					require.NoError(t, err)
					out.SetAttrTimeout(0) // as one is told by a process that is there
					reply(0, &out)
				case 3: // FUSE_GETATTR
					if header.NodeId == file {
						answered++
						attr.Mode, attr.Nlink = unix.S_IFREG|0o644, 1
					}
					var out fuse.AttrOut
					fuseattr.FillAttr(&out.Attr, attr)
					reply(0, &out)
				default:
					reply(-int32(unix.ENOENT), struct{}{})
				}
			}
			awaitRequest()
			binary.NativeEndian.PutUint64(told, uint64(hostinfo.BootTime()-row.age))
			orphanreply.FinishAfter(row.pause, device, [][]byte{told})
			require.NoError(t, m.connection.End())
			require.NoError(t, maker.Wait())
			require.Equal(t, row.says+"\n", said.String())
		})
	}
}

func (s *stuck) Create(
	ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, error) {
	s.begun <- struct{}{}
	select {
	case <-s.proceed:
	case <-ctx.Done():
	}
	s.ended <- ctx.Err()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.session.Create(ctx, caller, op, answer)
}

func mountStuck(t *testing.T) (dir string, s *stuck) {
	t.Helper()
	s = &stuck{
		session: newCluster().open(), begun: make(chan struct{}), proceed: make(chan struct{}), ended: make(chan error, 1),
	}
	dir = t.TempDir()
	mountAt(t, dir, s, Options{})
	return dir, s
}

// TestCallerKilled kills programs that wait for a creation.
func TestCallerKilled(t *testing.T) {
	dir, s := mountStuck(t)
	for _, row := range []struct {
		signal  syscall.Signal
		program []string
	}{
		{unix.SIGKILL, []string{"mkdir", "directory"}},
		{unix.SIGTERM, []string{"ln", "-s", "target", "symlink"}},
		{unix.SIGINT, []string{"touch", "file"}},
	} {
		command := exec.Command("sh", append([]string{"-c", `cd "$0" && exec "$@"`, dir}, row.program...)...)
		require.NoError(t, command.Start())
		<-s.begun
		require.NoError(t, command.Process.Signal(row.signal))
		select {
		case err := <-s.ended:
			require.ErrorIs(t, err, context.Canceled)
		case <-time.After(10 * time.Second):
			t.Fatalf("%v: %v has not ended what it waited for", row.program, row.signal)
		}
		require.Error(t, command.Wait())
	}
	require.Empty(t, shell(t, dir, "ls -A"))
}

// deaf is an Operator that never answers some requests.
type deaf struct {
	*session
	to    func(op *storepb.Op, query *storepb.Query) bool
	begun chan struct{}
	ended chan error // of the context of each
}

func (d *deaf) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if d.to(nil, query) {
		return d.hear(ctx)
	}
	return d.session.Query(ctx, query)
}

func (d *deaf) Mutate(ctx context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error) {
	if d.to(op, nil) {
		return d.hear(ctx)
	}
	return d.session.Mutate(ctx, caller, op)
}

func (d *deaf) hear(ctx context.Context) (*storepb.Result, error) {
	d.begun <- struct{}{}
	<-ctx.Done()
	d.ended <- ctx.Err()
	return nil, ctx.Err()
}

// TestKilledCallersLetOthersIn has programs wait for each other in one directory, and be killed.
func TestKilledCallersLetOthersIn(t *testing.T) {
	for _, row := range []struct {
		waitsFor, program string
		to                func(op *storepb.Op, query *storepb.Query) bool
	}{
		{"a lookup", "mkdir", func(_ *storepb.Op, query *storepb.Query) bool { return query.GetLookup() != nil }},
		{"a removal", "rmdir", func(op *storepb.Op, _ *storepb.Query) bool { return op.GetUnlink() != nil }},
	} {
		t.Run(row.waitsFor, func(t *testing.T) {
			d := &deaf{session: newCluster().open(), to: row.to, begun: make(chan struct{}), ended: make(chan error)}
			made := &storepb.Create{Parent: namespace.RootIno, Name: []byte("directory"), Mode: unix.S_IFDIR | 0o755}
			if row.program == "rmdir" {
				_, err := d.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: made}})
				require.NoError(t, err)
			}
			dir := t.TempDir()
			mountAt(t, dir, d, Options{})
			var commands []*exec.Cmd
			for range 3 {
				command := exec.Command("sh", "-c", `cd "$0" && exec "$1" directory`, dir, row.program)
				require.NoError(t, command.Start())
				commands = append(commands, command)
			}
			<-d.begun
			for _, command := range commands {
				require.NoError(t, command.Process.Kill())
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				for _, command := range commands {
					_ = command.Wait()
				}
			}()
			for {
				select {
				case <-d.begun: // the next one's
				case err := <-d.ended:
					require.ErrorIs(t, err, context.Canceled)
				case <-gone:
					return
				case <-time.After(10 * time.Second):
					t.Fatal("killed programs wait")
				}
			}
		})
	}
}

// TestCallerNotKilled sends signals to a program that waits for a creation and survives them.
func TestCallerNotKilled(t *testing.T) {
	dir, s := mountStuck(t)
	command := exec.Command("sh", "-c", `cd "$0" && exec python3 -c '
import os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
os.mkdir("directory")
signal.setitimer(signal.ITIMER_REAL, 0)'`, dir)
	require.NoError(t, command.Start())
	<-s.begun
	select {
	case err := <-s.ended:
		t.Fatalf("given up: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	close(s.proceed)
	require.NoError(t, <-s.ended)
	require.NoError(t, command.Wait())
	require.Equal(t, "directory", shell(t, dir, "ls -A"))
}

// TestCreationIsEnough lets nothing be asked once a file has been created: its maker has to hear of it.
func TestCreationIsEnough(t *testing.T) {
	dir, s := mountFor(t, newCluster())
	created := false
	s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if created {
			return nil, true, context.DeadlineExceeded
		}
		created = op.GetCreate() != nil
		return nil, false, nil
	})
	path := filepath.Join(dir, "lock")
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	require.NoError(t, err)
	// What was true at the creation is told this once only.
	var st unix.Stat_t
	assert.ErrorIs(t, unix.Fstat(fd, &st), unix.ETIMEDOUT)
	require.NoError(t, unix.Close(fd))
	s.intercept(nil)
	_, err = os.Lstat(path)
	require.NoError(t, err)
}
