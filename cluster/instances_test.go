package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// paused is TCP for a server that can be paused: it neither hears nor says anything then. Links to single
// addresses can be cut, too.
type paused struct {
	mu    sync.Mutex
	is    bool
	cut   map[string]bool
	conns []net.Conn
}

var _ rpc.Network = (*paused)(nil)

var errPaused = errors.New("the link is cut")

func (p *paused) keep(conn net.Conn, to string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.is || p.cut[to] {
		return nil, errors.Join(errPaused, conn.Close())
	}
	p.conns = append(p.conns, conn)
	return conn, nil
}

// set pauses the server, or resumes it, and cuts its links to some addresses.
func (p *paused) set(is bool, cut ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.is, p.cut = is, make(map[string]bool)
	for _, address := range cut {
		p.cut[address] = true
	}
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

// Dial is part of rpc.Network.
func (p *paused) Dial(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return p.keep(conn, address)
}

// Listen is part of rpc.Network.
func (p *paused) Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	return pausedListener{listener, p}, err
}

type pausedListener struct {
	net.Listener
	of *paused
}

// Accept is part of net.Listener.
func (l pausedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if kept, err := l.of.keep(conn, ""); err == nil {
			return kept, nil
		}
	}
}

// startPausable runs a cluster of three servers that can be paused.
func startPausable(t *testing.T) (nodes []*Node, networks map[*Node]*paused) {
	networks = make(map[*Node]*paused)
	for _, name := range []string{"n0", "n1", "n2"} {
		cfg := testConfig(t, name)
		if len(nodes) > 0 {
			cfg.Bootstrap, cfg.Join = false, []string{nodes[0].cfg.Address}
		}
		network := new(paused)
		cfg.Network = network
		node := startNode(t, cfg)
		nodes, networks[node] = append(nodes, node), network
	}
	requireInstances(t, nodes, nodes)
	return nodes, networks
}

// requireInstances waits until nodes have recorded which process each server is.
func requireInstances(t *testing.T, at []*Node, of []*Node) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, node := range at {
			for _, server := range of {
				if ids.Instance(node.members.get(server.dir.ID).GetInstance()) != server.dir.Instance() {
					return false
				}
			}
		}
		return true
	}, testWait, 10*time.Millisecond)
}

// copyOf is the configuration of a server that starts on a copy of another one's data directory, at
// another address.
func copyOf(t *testing.T, node *Node) Config {
	cfg := node.cfg
	cfg.DataDir = filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(cfg.DataDir, os.DirFS(node.cfg.DataDir)))
	cfg.Address, cfg.Advertise, cfg.Join, cfg.Network, cfg.Metrics = loopback.Free(t), "", nil, nil, nil
	return cfg
}

// requireEnds waits until a process ends because another one is followed.
func requireEnds(t *testing.T, node *Node) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- node.WaitReady(ctx) }()
	select {
	case err := <-node.Failed():
		return err
	case err := <-ready:
		require.Error(t, err, "it is followed")
		return err
	}
}

// requireAlarm waits until the cluster has the alarm for a server of which two processes run.
func requireAlarm(t *testing.T, at *Node, id string, names ...string) {
	t.Helper()
	var text string
	require.Eventually(t, func() bool {
		at.fsm.View(func(ns *namespace.Namespace) {
			for _, alarm := range ns.Alarms() {
				if alarm.GetKind() == namespace.AlarmTwoProcesses && alarm.GetNode() == id {
					text = alarm.GetText()
				}
			}
		})
		return text != ""
	}, testWait, 10*time.Millisecond)
	for _, name := range names {
		require.Contains(t, text, name)
	}
}

func TestEachStartIsAnotherInstance(t *testing.T) {
	t.Parallel()
	nodes, _ := startPausable(t)
	before := nodes[1].dir.Instance()
	require.NoError(t, nodes[1].Close())
	again := reopen(t, nodes[1].cfg)
	awaitReady(t, again)
	require.NotEqual(t, before, again.dir.Instance())
	require.Equal(t, []ids.Instance{before}, again.dir.Before())
	nodes[1] = again
	requireInstances(t, nodes, nodes)
}

// TestSecondProcessOfALiveServerIsRefused starts a copy of a follower, and of the leader, while they run.
func TestSecondProcessOfALiveServerIsRefused(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	require.NoError(t, err)
	for name, pick := range map[string]func([]*Node) *Node{
		"follower": func(nodes []*Node) *Node { return followersOf(t, nodes)[0] },
		"leader":   func(nodes []*Node) *Node { return leaderOf(t, nodes) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, _ := startPausable(t)
			original := pick(nodes)
			twin := reopen(t, copyOf(t, original))
			require.ErrorContains(t, requireEnds(t, twin), "two processes use the identity of the server "+original.cfg.Name)
			requireAlarm(t, leaderOf(t, nodes), original.dir.ID, original.cfg.Address+" on host "+host, twin.cfg.Address+" on host "+host)
			require.NoError(t, twin.Close())
			requireAddresses(t, nodes...)
			requireInstances(t, nodes, nodes)
			require.Equal(t, storepb.Code_OK, create(t, openTestClient(t, original, ""), "lock"))
		})
	}
}

// TestOldCopyOfADataDirectoryIsRefused starts one whose original has stopped, after that had another
// process.
func TestOldCopyOfADataDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	nodes, _ := startPausable(t)
	old := followersOf(t, nodes)[0]
	at := slices.Index(nodes, old)
	cfg := copyOf(t, old)
	require.NoError(t, old.Close())
	nodes[at] = reopen(t, old.cfg)
	awaitReady(t, nodes[at])
	requireInstances(t, nodes, nodes)
	require.NoError(t, nodes[at].Close())
	twin := reopen(t, cfg)
	require.ErrorContains(t, requireEnds(t, twin), "two processes use the identity of the server "+old.cfg.Name)
	require.NoError(t, twin.Close())
	nodes[at] = reopen(t, nodes[at].cfg)
	awaitReady(t, nodes[at])
	requireInstances(t, nodes, nodes)
}

// TestServerThatIsFarBehindFollowsTheOthers has the others start again, and forget their logs, while it
// is stopped: it knows the instances that they had before.
func TestServerThatIsFarBehindFollowsTheOthers(t *testing.T) {
	t.Parallel()
	nodes, _ := startPausable(t)
	behind := followersOf(t, nodes)[0]
	at := slices.Index(nodes, behind)
	takeSnapshot(t, behind) // with the instances of that time
	require.NoError(t, behind.Close())
	for range 3 {
		for n := range nodes {
			if n == at {
				continue
			}
			require.NoError(t, nodes[n].Close())
			nodes[n] = reopen(t, nodes[n].cfg)
			awaitReady(t, nodes[n])
			takeSnapshot(t, nodes[n])
		}
	}
	nodes[at] = reopen(t, behind.cfg)
	awaitReady(t, nodes[at])
	requireInstances(t, nodes, nodes)
}

// TestOfTwoCopiesOneIsFollowed starts both at once, with a cluster that works without them.
func TestOfTwoCopiesOneIsFollowed(t *testing.T) {
	t.Parallel()
	nodes, _ := startPausable(t)
	original := followersOf(t, nodes)[0]
	at := slices.Index(nodes, original)
	require.NoError(t, original.Close())
	twins := []*Node{reopen(t, copyOf(t, original)), reopen(t, copyOf(t, original))}
	ended := make(chan int, 2)
	for n, twin := range twins {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			failed := make(chan struct{})
			go func() {
				select {
				case <-twin.Failed(): //nolint:errcheck // only that it came
					close(failed)
				case <-ctx.Done():
				}
			}()
			if twin.WaitReady(ctx) != nil {
				ended <- n
				return
			}
			<-failed // it was ready only if it is the one
			ended <- n
		}()
	}
	out := <-ended
	require.NoError(t, twins[out].Close())
	nodes[at] = twins[1-out]
	requireInstances(t, nodes, nodes)
}

// TestResumedServerWhoseCopyIsFollowedDoesNotCount pauses a server, starts its copy, and resumes it.
func TestResumedServerWhoseCopyIsFollowedDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func([]*Node) *Node{
		"follower": func(nodes []*Node) *Node { return followersOf(t, nodes)[0] },
		"leader":   func(nodes []*Node) *Node { return leaderOf(t, nodes) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, networks := startPausable(t)
			original := pick(nodes)
			at := slices.Index(nodes, original)
			networks[original].set(true)
			others := slices.Delete(slices.Clone(nodes), at, at+1)
			leaderOf(t, others)
			twin := reopen(t, copyOf(t, original))
			awaitReady(t, twin)
			nodes[at] = twin
			requireAddresses(t, nodes...)
			requireInstances(t, nodes, nodes)

			networks[original].set(false)
			leader := leaderOf(t, nodes)
			word, instance, _ := original.TermReport()
			require.Equal(t, twin.dir.ID, word)
			require.False(t, leader.readIndex.isQuorumWith(word, uint64(instance)))
			for _, node := range others {
				require.False(t, node.instances.Follows(raft.ServerID(original.dir.ID), original.dir.Instance()))
				require.Nil(t, node.readIndex.probeVoter(&storepb.Member{Id: original.dir.ID, Address: original.cfg.Address}, rpc.ProbeTimeout), "its word")
				require.Error(t, node.raft.Identify(raft.ServerID(original.dir.ID), raft.ServerAddress(original.cfg.Address)), "its answers to raft")
			}
			require.ErrorIs(t, requireEnds(t, original), errReplaced)
			require.Equal(t, storepb.Code_OK, create(t, openTestClient(t, twin, ""), "lock"))
			require.NoError(t, original.Close())
			requireInstances(t, nodes, nodes)
		})
	}
}

// TestCopyIsNotFollowedWhileAnotherServerReachesTheOriginal cuts the link between the leader and a
// server, and starts a copy of that.
func TestCopyIsNotFollowedWhileAnotherServerReachesTheOriginal(t *testing.T) {
	t.Parallel()
	nodes, networks := startPausable(t)
	leader := leaderOf(t, nodes)
	original := followersOf(t, nodes)[0]
	networks[original].set(false, leader.cfg.Address)
	networks[leader].set(false, original.cfg.Address)
	leader = leaderOf(t, nodes)
	twin := reopen(t, copyOf(t, original))
	require.ErrorContains(t, requireEnds(t, twin), "two processes use the identity of the server "+original.cfg.Name)
	require.NoError(t, twin.Close())
	networks[original].set(false)
	networks[leader].set(false)
	requireInstances(t, nodes, nodes)
	require.True(t, strings.HasPrefix(original.dir.ID, original.cfg.Name))
}
