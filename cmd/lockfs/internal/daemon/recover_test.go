package daemon

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/backup"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// server is a node that is started and stopped.
type server struct {
	cluster.Config
	node *cluster.Node
}

func newServer(t testing.TB, name string, join ...string) *server {
	return &server{Config: cluster.Config{
		Name: name, DataDir: filepath.Join(t.TempDir(), name), Address: loopback.Free(t), Bootstrap: len(join) == 0,
		Join: join, Insecure: true, Logger: slog.New(slog.DiscardHandler), SessionTTL: 3 * time.Second,
	}}
}

func (s *server) start(t testing.TB) {
	t.Helper()
	node, err := cluster.Open(s.Config)
	require.NoError(t, err)
	s.node = node
	t.Cleanup(func() { _ = node.Close() })
}

func (s *server) ready(t testing.TB) {
	t.Helper()
	s.start(t)
	require.NoError(t, s.node.WaitReady(t.Context()))
}

func (s *server) status(t testing.TB) *clusterpb.StatusReply {
	t.Helper()
	status, err := s.node.Status(t.Context(), new(clusterpb.StatusRequest))
	require.NoError(t, err)
	return status
}

func (s *server) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, s.node.Close())
}

// do has a mount that comes and goes do something.
func (s *server) do(t testing.TB, op *storepb.Op) *storepb.Result {
	t.Helper()
	client, err := s.node.OpenClient(t.Context(), session.Config{Host: "h", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	result, err := client.Mutate(t.Context(), &storepb.Caller{}, op)
	require.NoError(t, err)
	require.NoError(t, client.Close(t.Context()))
	return result
}

func creation(name string) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: namespace.RootIno, Name: []byte(name), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
	}}}
}

// TestTheNewestOfThreeIsRecovered: the commands say which one that is, and refuse what could lose something or end in two clusters.
func TestTheNewestOfThreeIsRecovered(t *testing.T) {
	program := clitest.ProgramNamed(t, "lockfs")
	lockfs := func(code int, args ...string) clitest.Outcome {
		t.Helper()
		done := clitest.Execute(t, nil, program, args...)
		require.Equal(t, code, done.Code, "%v: %s", args, done.Stderr)
		return done
	}
	a := newServer(t, "a")
	b, c := newServer(t, "b", a.Address), newServer(t, "c", a.Address)
	for _, s := range []*server{a, b, c} {
		s.ready(t)
	}
	require.Equal(t, storepb.Code_OK, a.do(t, creation("all")).GetCode())
	written := a.status(t).GetCommitIndex()
	require.Eventually(t, func() bool { return c.status(t).GetAppliedIndex() >= written }, 30*time.Second, time.Millisecond)
	c.stop(t)
	require.Equal(t, storepb.Code_OK, a.do(t, creation("two")).GetCode())
	b.stop(t)
	require.Contains(t, lockfs(1, "server", "recover", "--data", a.DataDir).Stderr, "in use by another process")
	a.stop(t)

	inspect := func(s *server) string {
		path := filepath.Join(t.TempDir(), s.Name+".json")
		require.NoError(t, os.WriteFile(path, []byte(lockfs(0, "server", "inspect", "--json", "--data", s.DataDir).Stdout), 0o600))
		return path
	}
	ofA, ofB, ofC := inspect(a), inspect(b), inspect(c)
	refused := lockfs(1, "server", "recover", "--data", c.DataDir, "--compare", ofA+","+ofB)
	require.Contains(t, refused.Stderr, "nothing was done: the log of ")
	require.Contains(t, refused.Stdout, "NEWER")
	require.Contains(t, refused.Stdout, "Missing here: at least ")

	tell := func(args ...string) (report recovered) {
		t.Helper()
		done := lockfs(0, append([]string{"server", "recover", "--dry-run", "--json", "--data", a.DataDir}, args...)...)
		require.NoError(t, json.Unmarshal([]byte(done.Stdout), &report), done.Stdout)
		require.Zero(t, report.GoesOn)
		return report
	}
	alone := tell()
	require.Len(t, alone.Voters, 3)
	require.Equal(t, 1, alone.Uncompared)
	require.Contains(t, lockfs(0, "server", "recover", "--dry-run", "--data", a.DataDir).Stdout, "is unknown without 1 more voters")
	with := tell("--compare", ofC)
	require.Zero(t, with.Uncompared)
	require.Empty(t, with.Newer)
	require.Contains(t, lockfs(0, "server", "recover", "--dry-run", "--data", a.DataDir, "--compare", ofC).Stdout, "no acknowledged entry")
	require.Contains(t, lockfs(1, "server", "recover", "--data", a.DataDir, "--compare", ofC+","+ofC).Stderr, "like another file")
	require.Contains(t, lockfs(1, "server", "recover", "--data", a.DataDir, "--compare", os.DevNull).Stderr, "is not an output")

	b.start(t) // it cannot do anything alone, but another could come back
	alive := lockfs(1, "server", "recover", "--data", a.DataDir, "--compare", ofC)
	require.Contains(t, alive.Stderr, "b still answers: stop the rest of the cluster")
	b.stop(t)

	done := lockfs(0, "server", "recover", "--data", a.DataDir, "--compare", ofC)
	require.Contains(t, done.Stdout, "Recovered: a is a cluster of one")
	a.ready(t)
	for _, name := range []string{"all", "two"} {
		require.Equal(t, storepb.Code_EXISTS, a.do(t, creation(name)).GetCode())
	}
	again := newServer(t, "b", a.Address)
	again.ready(t)
	require.Equal(t, storepb.Code_EXISTS, again.do(t, creation("two")).GetCode())
	again.stop(t)
	a.stop(t)
	require.Contains(t, lockfs(1, "server", "recover", "--data", t.TempDir()).Stderr, "is no data directory")

	left, err := consensus.OpenRecovery(c.DataDir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for days, says := range map[int]string{-2: "has reached ", 2: "makes every lock with a time stale at once"} {
		_, err = recoverFrom(t.Context(), left, time.Now().AddDate(0, 0, days), nil, false, false)
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, left.Close())
	forced := lockfs(0, "server", "recover", "--data", c.DataDir, "--compare", ofA, "--force").Stdout
	require.Contains(t, forced, "NEWER")
	require.Contains(t, forced, "Recovered: c is a cluster of one")
	c.ready(t)
	require.Equal(t, storepb.Code_EXISTS, c.do(t, creation("all")).GetCode())
	require.Equal(t, storepb.Code_OK, c.do(t, creation("two")).GetCode(), "it was lost, as it said")
	c.stop(t)

	single := newServer(t, "s")
	single.ready(t)
	single.stop(t)
	require.Contains(t, lockfs(1, "server", "recover", "--data", single.DataDir).Stderr, "no recovery is needed")
}

// TestRestoreMakesADirectoryThatAServerStartsWith from a file and from standard input, and of nothing that is no backup.
func TestRestoreMakesADirectoryThatAServerStartsWith(t *testing.T) {
	program := clitest.ProgramNamed(t, "lockfs")
	state := namespace.New()
	file := filepath.Join(t.TempDir(), "backup")
	header, err := backup.Create(file, func(w io.Writer) error { return backup.Write(w, backup.Header{Node: "x", Term: 5}, state.Snapshot()) })
	require.NoError(t, err)
	s := newServer(t, "a")
	s.Bootstrap = false
	args := []string{"restore", file, "--data", s.DataDir, "--name", "a", "--addr", s.Address, "--insecure"}
	done := clitest.Execute(t, nil, program, append(args, "--json")...)
	require.Equal(t, 0, done.Code, done.Stderr)
	var made restored
	require.NoError(t, json.Unmarshal([]byte(done.Stdout), &made))
	require.Equal(t, header, made.Backup)
	require.Greater(t, made.Index, uint64(1<<40))
	s.ready(t)
	require.Equal(t, storepb.Code_OK, s.do(t, creation("new")).GetCode())
	s.stop(t)

	refused := func(says string, args ...string) {
		t.Helper()
		done := clitest.Execute(t, nil, program, args...)
		require.Equal(t, 1, done.Code)
		require.Contains(t, done.Stderr, says)
	}
	refused("is not empty", args...)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	refused("give --data and --name", "restore", file, "--data", elsewhere)
	refused("missing port in address: write it like 10.0.0.1:7420", "restore", file, "--data", elsewhere, "--name", "a", "--addr", "10.0.0.1")
	refused("it is not a lockfs backup", "restore", os.DevNull, "--data", elsewhere, "--name", "a")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content[:len(content)-1], 0o600))
	refused("damaged, or not complete", "restore", file, "--data", elsewhere, "--name", "a")
	require.NoDirExists(t, elsewhere)
}

// TestRestoreLooksAtTheClock with one that is behind the backup, and with one that is far ahead of it.
func TestRestoreLooksAtTheClock(t *testing.T) {
	program := clitest.ProgramNamed(t, "lockfs")
	restoreState := func(state *namespace.Namespace, args ...string) clitest.Outcome {
		file := filepath.Join(t.TempDir(), "backup")
		_, err := backup.Create(file, func(w io.Writer) error { return backup.Write(w, backup.Header{Node: "x", Term: 5}, state.Snapshot()) })
		require.NoError(t, err)
		dir := filepath.Join(t.TempDir(), "data")
		return clitest.Execute(t, nil, program, append([]string{"restore", file, "--data", dir, "--name", "a", "--insecure"}, args...)...)
	}
	restoreOf := func(at time.Time, args ...string) clitest.Outcome {
		state := namespace.New()
		state.Apply(1, &storepb.Command{Time: at.UnixNano(), Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: new(storepb.Tick)}}})
		return restoreState(state, args...)
	}
	behind := restoreOf(time.Now().AddDate(0, 0, 2))
	require.Equal(t, 1, behind.Code)
	require.Contains(t, behind.Stderr, "but cluster time has reached ")
	require.Zero(t, restoreOf(time.Now().AddDate(0, 0, 2), "--force").Code)
	old := restoreOf(time.Now().AddDate(0, 0, -2))
	require.Zero(t, old.Code, old.Stderr)
	require.Contains(t, old.Stderr, "makes every lock with a time stale at once")
	ahead := namespace.New()
	require.NoError(t, ahead.Rebase(time.Now().Add(2*time.Hour), namespace.RebaseOptions{Cluster: "restored by a clock that was ahead"}))
	again := restoreState(ahead)
	require.Equal(t, 1, again.Code)
	require.Contains(t, again.Stderr, "the clock is behind the numbers of the state")
	require.Contains(t, again.Stderr, "Set the clock right")
	require.Zero(t, restoreState(ahead, "--force").Code)
	recent := restoreOf(time.Now().Add(-time.Hour))
	require.Zero(t, recent.Code)
	require.Empty(t, recent.Stderr)
}
