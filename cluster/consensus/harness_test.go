package consensus

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// testWait is far beyond what anything here takes on a busy machine.
const testWait = 30 * time.Second

func quietLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// setup is what a voter is started with.
type setup struct {
	path  string
	claim Claim
	Config
}

func newSetup(t testing.TB) setup {
	network := listen(t)
	return setup{
		filepath.Join(t.TempDir(), "a"), Claim{Name: "a", Address: network.Addr().String(), Bootstrap: true},
		Config{Network: network, Logger: quietLogger()},
	}
}

// testNetwork is plain TCP. It can be used again after raft has closed it.
type testNetwork struct{ net.Listener }

func listen(t testing.TB) testNetwork {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return testNetwork{listener}
}

// Close is part of net.Listener.
func (testNetwork) Close() error { return nil }

// Dial is part of raft.StreamLayer.
func (testNetwork) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(address), timeout)
}

// voter is a cluster of one, with a session.
type voter struct {
	*Raft
	dir    *Directory
	failed chan error
	cancel context.CancelFunc

	store   *raftstore.Store
	session uint64
	seq     uint64
}

// open starts a voter as a node does. Nothing is left open when it fails.
func (s setup) open(ctx context.Context) (*voter, error) {
	v := &voter{failed: make(chan error, 10), session: rand.Uint64()}
	ctx, v.cancel = context.WithCancel(ctx)
	s.StepDown = NewStepDown()
	s.Fail = func(err error) {
		v.failed <- err
		v.cancel()
	}
	s.CannotApply = s.Fail
	var err error
	if v.dir, err = OpenDirectory(s.path, s.claim); err != nil {
		return nil, err
	}
	if err = v.dir.Bootstrap(s.Config); err == nil {
		v.Raft, err = Open(v.dir, s.Config)
	}
	if err != nil {
		return nil, errors.Join(err, v.dir.Close())
	}
	v.store = &raftstore.Store{
		Raft: v.Raft.Raft, Now: func() int64 { return time.Now().UnixNano() }, Version: func() uint32 { return version.Newest },
	}
	go v.TakeSnapshots(ctx)
	go v.WatchDisk()
	return v, nil
}

// start runs a voter until the test ends, and waits until it leads.
func (s setup) start(t testing.TB) *voter {
	t.Helper()
	v, err := s.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = v.close() })
	require.Eventually(t, func() bool { return v.State() == raft.Leader }, testWait, time.Millisecond)
	open := &storepb.OpenSession{Host: "h"}
	result, err := v.store.Propose(t.Context(), &storepb.Command{Session: v.session, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: open}}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	return v
}

func (v *voter) close() error {
	v.cancel()
	return errors.Join(v.Close(), v.dir.Close())
}

func (v *voter) do(t testing.TB, op *storepb.Op) *storepb.Result {
	t.Helper()
	v.seq++
	cmd := &storepb.Command{Session: v.session, Seq: v.seq, Acked: v.seq - 1, Caller: &storepb.Caller{}, Op: op}
	result, err := v.store.Propose(t.Context(), cmd)
	require.NoError(t, err)
	return result
}

func (v *voter) create(t testing.TB, name string) *storepb.Result {
	t.Helper()
	return v.do(t, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: namespace.RootIno, Name: []byte(name), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
	}}})
}

func (v *voter) mustCreate(t testing.TB, name string) *storepb.Result {
	t.Helper()
	result := v.create(t, name)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	return result
}

// snapshot does not mind that raft has just taken one by itself.
func (v *voter) snapshot(t testing.TB) {
	t.Helper()
	if err := v.Snapshot().Error(); err != nil {
		require.ErrorIs(t, err, raft.ErrNothingNewToSnapshot)
	}
}

// directoryOf is that of a server which is only heard.
func directoryOf(id string) *Directory { return &Directory{Identity: Identity{ID: id}} }
