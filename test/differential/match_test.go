package differential

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// startHere starts workers of this process, which say that they are on some hosts.
func startHere(t *testing.T, dir string, hosts ...string) (workers []*Worker) {
	t.Helper()
	for i, host := range hosts {
		w := newWorker(dir)
		workers = append(workers, start(t, Family{host, 1000 + i}, w.do))
	}
	return workers
}

func start(t *testing.T, family Family, do func(*Call) Answer) *Worker {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	socket, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer socket.Close()
	go func() { assert.NoError(t, serve(path, do)) }()
	w, err := Await(socket)
	require.NoError(t, err)
	t.Cleanup(w.Close)
	w.Family = family
	return w
}

func matchHere(t *testing.T, mode Mode, mount string) *Match {
	t.Helper()
	hosts := []string{"ash", "birch", "cedar"}
	return &Match{
		Mode: mode, Mount: startHere(t, mount, hosts...), Disk: startHere(t, t.TempDir(), hosts...),
		Observer: startHere(t, mount, "none")[0],
	}
}

// TestMain takes the umask away, which workers have not.
func TestMain(m *testing.M) {
	unix.Umask(0)
	os.Exit(m.Run())
}

func TestADiskIsInStepWithItself(t *testing.T) {
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			m := matchHere(t, mode, t.TempDir())
			for seed := range uint64(20) {
				sequence := Random(rand.New(rand.NewPCG(seed, 0)), mode, 3, 150)
				d, err := m.Play(sequence)
				require.NoError(t, err)
				if mode == Locks && d != nil {
					require.Contains(t, d.Reason, "not refused", "%s", d)
					continue
				}
				require.Nil(t, d, "%s", d)
			}
			t.Log(m.Calls, "calls")
		})
	}
}

func TestRefusalsAreExplained(t *testing.T) {
	families := []Family{{"ash", 1001}, {"birch", 1002}}
	write := func(family int, path, content string) Step {
		return Step{family, []Call{
			{Op: Open, Path: path, Flags: unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY, Mode: 0o644}, {Op: Write, Data: content}, {Op: Close},
		}}
	}
	do := func(family int, calls ...Call) Step { return Step{family, calls} }
	cat, unlink := Call{Op: Cat, Path: "f"}, Call{Op: Unlink, Path: "f"}
	for _, c := range []struct {
		what      string
		steps     []Step
		explained string
		demanded  bool
	}{
		{"another host's pid", []Step{write(0, "f", ownPID)}, "EBUSY", true},
		{"one's own", []Step{write(1, "f", ownPID)}, "", false},
		{"a number", []Step{write(0, "f", "{number}")}, "", false},
		{"another's name", []Step{write(0, "f", ownHost)}, "", false},
		{"empty", []Step{write(0, "f", "")}, "", false},
		{"empty when it was read", []Step{write(0, "f", ""), do(1, cat)}, "EBUSY", false},
		{"empty when it was read, and written since", []Step{
			{0, []Call{{Op: Open, Path: "f", Flags: unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY, Mode: 0o644}}}, do(1, cat),
			do(0, Call{Op: Write, Data: ownHost}),
		}, "EBUSY ENOENT", false},
		{"empty when it was read, and data since", []Step{
			{0, []Call{{Op: Open, Path: "f", Flags: unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY, Mode: 0o644}}}, do(1, cat),
			do(0, Call{Op: Write, Data: "hello"}),
		}, "", false},
		{"another than was read", []Step{write(0, "f", ownHost), do(1, cat), do(0, unlink), write(0, "f", ownHost)}, "ENOENT", false},
		{"the same, and a list", []Step{
			write(0, "f", ownHost), do(1, cat), do(0, unlink), write(0, "f", ownHost), do(1, Call{Op: List, Path: "."}),
		}, "", false},
		{"another than was removed", []Step{write(1, "f", ownHost), do(1, unlink), write(0, "f", ownHost)}, "", false},
		{"data now", []Step{write(0, "f", ownHost), do(1, cat), do(0, unlink), write(0, "f", "hello")}, "", false},
		{"data then", []Step{write(0, "f", "hello"), do(1, cat), do(0, unlink), write(0, "f", ownHost)}, "", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			m := matchHere(t, Locks, t.TempDir())
			m.Mount, m.Disk = m.Mount[:2], m.Disk[:2]
			for i, family := range families {
				m.Mount[i].Family = family
			}
			d, err := m.Play(c.steps)
			require.NoError(t, err)
			require.Nil(t, d, "%s", d)
			met, err := m.meet(1, unlink)
			require.NoError(t, err)
			var explained []string
			for _, errno := range []string{"EBUSY", "ENOENT", "ESTALE", "EPERM"} {
				if m.guards.explain(Locks, 1, &unlink, errno, met) {
					explained = append(explained, errno)
				}
			}
			require.Equal(t, c.explained, strings.Join(explained, " "))
			require.Equal(t, c.demanded, m.guards.demand(1, &unlink, met))
		})
	}
}

// TestShorten has a file system that is wrong: to one family it says that it made directories, and makes none.
func TestShorten(t *testing.T) {
	mount := t.TempDir()
	m := matchHere(t, Plain, mount)
	w := newWorker(mount)
	m.Mount[1] = start(t, m.Mount[1].Family, func(c *Call) Answer {
		if c.Op == Mkdir {
			return Answer{}
		}
		return w.do(c)
	})
	sequence := Random(rand.New(rand.NewPCG(1, 0)), Plain, 3, 200)
	d, err := m.Play(sequence)
	require.NoError(t, err)
	require.NotNil(t, d)
	short, d, err := m.Shorten(sequence, d, time.Minute)
	require.NoError(t, err)
	require.NotNil(t, d)
	require.LessOrEqual(t, len(short), 2, "%v", short)
}
