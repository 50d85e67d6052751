package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"lockfs/cluster/audit"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
)

// Node is a running voter.
type Node struct {
	cfg     Config
	id      *identity
	logger  *slog.Logger
	ctx     context.Context // ends when the node is closed
	cancel  context.CancelFunc
	failed  chan error
	newer   sync.Once       // a mount is of a newer version
	tooMany sync.Once       // connections
	broken  context.Context // ends, for a cause, when the node cannot go on
	breaks  context.CancelCauseFunc

	dirLock    *os.File
	silence    *withdrawal
	storage    *storage
	transport  raft.Transport
	raft       *raft.Raft
	fsm        *raftstore.FSM
	store      *raftstore.Store
	clock      *clock
	terms      *terms
	leadership *leadership
	confirmer  *confirmer
	askFirst   atomic.Uint32 // number of the voter whose word is asked for before others'
	peers      *rpc.Peers
	listener   net.Listener // of the API; nil: none
	server     *rpc.Server

	audit    *audit.Log
	auditing sync.WaitGroup

	adminMu   sync.Mutex // one change by an administrator at a time
	newcomers *newcomers
	mount     atomic.Pointer[string]
}

// Open starts a node. It is of use once [Node.WaitReady] returns. The error is a *DamagedError when
// the data directory is.
func Open(cfg Config) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, logger: cfg.Logger.With("node", cfg.Name), failed: make(chan error, 1),
		silence: newWithdrawal(), clock: newClock(readClocks), peers: rpc.NewPeers(), terms: newTerms(cfg.SessionTerm), newcomers: newNewcomers(),
	}
	if n.cfg.Metrics == nil {
		n.cfg.Metrics = NewMetrics()
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.broken, n.breaks = context.WithCancelCause(n.ctx)
	if err := n.open(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) open() error {
	var err error
	if n.dirLock, err = lockDataDir(n.cfg.DataDir); err != nil {
		return err
	}
	if n.id, err = identify(&n.cfg); err != nil {
		return err
	}
	if !n.id.Joined && !n.cfg.Bootstrap && len(n.cfg.Join) == 0 {
		return fmt.Errorf("data directory %s belongs to no cluster yet: say --bootstrap to begin one, or --join to enter one", n.cfg.DataDir)
	}
	if n.storage, err = openStorage(&n.cfg, n.id.Joined, newDisk(n.cfg.DataDir, n.fail, n.silence), n.logger); err != nil {
		return err
	}
	if err := n.startRaft(); err != nil {
		return err
	}
	if err := n.bootstrap(); err != nil {
		return err
	}
	if err := n.startAudit(); err != nil {
		return err
	}
	go n.takeSnapshots()
	go n.govern()
	if err := n.serve(); err != nil {
		return err
	}
	go n.hangUp()
	go n.storage.disk.watch(func() bool { return n.raft.State() == raft.Leader && len(n.voterIDs()) > 1 })
	return nil
}

func (n *Node) startRaft() error {
	var err error
	if n.transport, err = newTransport(n.cfg.RaftAddress, n.storage.logs, n.silence, n.logger); err != nil {
		return err
	}
	n.fsm = raftstore.NewFSM(n.storage.state, n.cannotApply)
	n.storage.state = nil // it is the state machine's from now on
	n.leadership = newLeadership(raft.ServerID(n.id.ID), n.silence)
	n.confirmer = &confirmer{round: n.confirmRound}
	logs, fsm := logCache(n.storage.logs), earlyFSM{n.fsm, n.storage.logs}
	n.raft, err = raft.NewRaft(n.raftConfig(), fsm, logs, n.storage.votes, n.storage.snapshots, n.transport)
	if err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	// Both have looked for the newest snapshot. With an older one raft would apply commands again.
	last, err := strconv.ParseUint(n.raft.Stats()["last_snapshot_index"], 10, 64)
	if err != nil || last < n.storage.snapshot {
		return fmt.Errorf("raft starts from the snapshot at index %d, and the state is that of index %d: start again", last, n.storage.snapshot)
	}
	if n.cfg.RaftAddress != "" {
		n.storage.logs.raft.Store(n.raft)
	}
	n.store = &raftstore.Store{Raft: n.raft, Now: n.clock.Now}
	n.leadership.follow(n.raft, n.ctx.Done())
	return n.cfg.Metrics.Registry.Register(newNodeCollector(n))
}

func (n *Node) raftConfig() *raft.Config {
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(n.id.ID)
	least := slog.LevelDebug
	cfg.HeartbeatTimeout, cfg.ElectionTimeout = heartbeatTimeout, electionTimeout
	cfg.LeaderLeaseTimeout, cfg.CommitTimeout = leaseTimeout, commitTimeout
	if n.cfg.RaftAddress == "" {
		cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = aloneTimeout, aloneTimeout, aloneTimeout
		least = slog.LevelError // raft warns of electing itself, as it does at each start
	}
	cfg.BatchApplyCh = true
	cfg.NoSnapshotRestoreOnStart = true    // the state machine begins with it
	cfg.SnapshotThreshold = math.MaxUint64 // takeSnapshots decides
	cfg.TrailingLogs = n.trailingEntries()
	cfg.NotifyCh = n.leadership.notify
	cfg.Logger = raftLogger(n.logger, least)
	cfg.NoLegacyTelemetry = true
	return cfg
}

// bootstrap begins a cluster of this node alone, once.
func (n *Node) bootstrap() error {
	if n.id.Joined || !n.cfg.Bootstrap {
		return nil
	}
	err := waitConfigChange(n.broken, n.raft.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(n.id.ID), Address: n.transport.LocalAddr(),
	}}}))
	if n.broken.Err() != nil {
		err = context.Cause(n.broken) // raft may have ended with the disk
	}
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) { // it was done, but not noted, before a crash
		return fmt.Errorf("bootstrap: %w", err)
	}
	n.id.Joined = true
	return n.id.save(n.cfg.DataDir)
}

// serve answers the other nodes, mounts and commands. A node without network has none.
func (n *Node) serve() error {
	n.server = rpc.NewServer(n, n.cfg.Metrics.malformed.Inc, n.crowded)
	if n.cfg.APIAddress == "" {
		return nil
	}
	listener, err := net.Listen("tcp", n.cfg.APIAddress)
	if err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	n.listener = listener
	go func() {
		if err := n.server.Serve(listener); n.ctx.Err() == nil {
			n.fail(fmt.Errorf("serve the API: %w", err))
		}
	}()
	return nil
}

// hangUp ends all that others could hear of this node once it is to be silent.
func (n *Node) hangUp() {
	select {
	case <-n.silence.begun:
		n.stopServing()
	case <-n.ctx.Done():
	}
}

func (n *Node) stopServing() {
	if n.server != nil {
		n.server.Close()
	}
	if n.listener != nil {
		_ = n.listener.Close()
	}
}

// fail says that the node cannot go on. Only the first reason counts.
func (n *Node) fail(err error) {
	n.breaks(err)
	select {
	case n.failed <- err:
	default:
	}
}

// Failed delivers the reason when the node cannot go on; the process is to end then.
func (n *Node) Failed() <-chan error { return n.failed }

// SetMount notes where this process has mounted the namespace, for the status.
func (n *Node) SetMount(dir string) { n.mount.Store(&dir) }

func (n *Node) mountPoint() string {
	if dir := n.mount.Load(); dir != nil {
		return *dir
	}
	return ""
}

// Close stops the node. What it acknowledged is on disk already.
func (n *Node) Close() error {
	n.cancel()
	n.stopServing()
	var errs []error
	if n.raft != nil {
		errs = append(errs, n.raft.Shutdown().Error())
	}
	if closer, ok := n.transport.(raft.WithClose); ok {
		errs = append(errs, closer.Close())
	}
	if n.storage != nil {
		errs = append(errs, n.storage.close())
	}
	n.peers.Close()
	errs = append(errs, n.closeAudit())
	if n.dirLock != nil {
		errs = append(errs, n.dirLock.Close())
	}
	return errors.Join(errs...)
}
