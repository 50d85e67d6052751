package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/backup"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// Open starts a node. Wait for [Node.WaitReady] before you use it. The error is a *consensus.DamagedError
// if the data directory is damaged.
func Open(cfg Config) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := newNode(cfg)
	if n.cfg.Metrics == nil {
		n.cfg.Metrics = NewMetrics()
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.watchdogDeadline.Store(new(time.Now().Add(watchdogTimeout)))
	n.failure, n.markFailed = context.WithCancelCause(n.ctx)
	if err := n.open(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func newNode(cfg Config) *Node {
	return &Node{
		cfg: cfg, logger: cfg.Logger.With("node", cfg.Name), failed: make(chan error, 1),
		stepDown: consensus.NewStepDown(), clock: newClock(readingOf(cfg.Clock)), latency: newLatencyWindow(),
	}
}

// openDirectory opens the data directory of a node in a cluster, or of one about to join or bootstrap a
// cluster.
func (n *Node) openDirectory() error {
	joins := len(n.cfg.Join) > 0 && !n.cfg.Bootstrap
	if !n.cfg.Insecure && n.cfg.Address != "" {
		_, err := identity.Load(filepath.Join(n.cfg.DataDir, consensus.CredentialsDir))
		joins = !errors.Is(err, identity.ErrNone) // see Enroll
	}
	if n.cfg.Bootstrap && joins && !consensus.HasIdentity(n.cfg.DataDir) {
		return fmt.Errorf("data directory %s is of a server that has come into a cluster with a token: start it with `lockfs server`", n.cfg.DataDir)
	}
	var err error
	if n.dir, err = consensus.OpenDirectory(n.cfg.DataDir, consensus.Claim{
		Name: n.cfg.Name, Address: n.cfg.Advertise, Bootstrap: n.cfg.Bootstrap, Joins: joins, Versions: n.cfg.versions,
	}); err != nil {
		return err
	}
	if err := n.openSecurity(); err != nil {
		return err
	}
	return n.dir.RequireCluster(joins || n.cfg.Bootstrap)
}

// bootstrap makes the node the first one of a cluster, unless its directory belongs to a cluster.
func (n *Node) bootstrap() error {
	if !n.cfg.Bootstrap {
		return nil
	}
	return n.dir.Bootstrap(consensus.Config{Logger: n.logger, Writing: n.cfg.Writing, Entries: n.cfg.entries})
}

func (n *Node) open() error {
	if err := n.openDirectory(); err != nil {
		return err
	}
	if err := n.bootstrap(); err != nil {
		return err
	}
	n.peers = rpc.NewPeers(n.connections())
	n.router = rpc.NewRouter(n.peers, n)
	n.forwarder = rpc.NewForwarder(n.connections(), n.dir.ClusterID)
	if err := n.startRaft(); err != nil {
		return err
	}
	var err error
	if n.audit, err = openAuditFollower(n.ctx, n.cfg.DataDir, n.fsm, n.logger); err != nil {
		return err
	}
	go n.FollowLeader(n.ctx, n.router.SetLeader)
	go n.raft.TakeSnapshots(n.ctx)
	go n.leaderLoop().run()
	go n.stateHasher.run()
	go n.sample()
	go n.comparison().run()
	go n.rediscover(n.ctx)
	go n.versionUpgrader().run()
	n.serve()
	go n.hangUp()
	go n.raft.WatchDisk()
	go n.raft.WatchSpace(n.ctx)
	go n.raft.WatchLeader()
	n.raft.ElectSingleVoter()
	return nil
}

func (n *Node) startRaft() error {
	n.leadership = newLeadership(raft.ServerID(n.dir.ID), n.stepDown)
	met := consensus.NewLearnedAddresses()
	n.instances = newInstances(n.ctx, n.dir, func(address string) *rpc.Client { return rpc.NewClient(address, n.connections()) }, n.logger)
	n.instances.replaced, n.instances.conflict = n.replaced, n.reportConflict
	network, err := n.openPort()
	if err != nil {
		return err
	}
	var running atomic.Pointer[consensus.Raft] // raft stores entries before Open returns it
	n.termReports = newTermReports(func() ids.Term {
		if r := running.Load(); r != nil {
			return ids.Term(r.CurrentTerm())
		}
		return 0
	}, monotonic)
	n.raft, err = consensus.Open(n.dir, consensus.Config{
		Network: network, Addresses: met, Instances: n.instances, Logger: n.logger, SnapshotEntries: n.cfg.SnapshotEntries, Elected: n.leadership.notify,
		StepDown: n.stepDown, Wrote: func(took time.Duration) { n.observeWrite(took) },
		OnStore: n.termReports.onStoreEntries, Writing: n.cfg.Writing,
		MinFree: n.cfg.MinFree, Fail: n.fail, CannotApply: n.onApplyFailure, Entries: n.cfg.entries,
	})
	if err != nil {
		return err
	}
	running.Store(n.raft)
	n.fsm = n.raft.FSM
	if n.security != nil {
		n.security.verifier.fsm.Store(n.fsm)
	}
	n.store = &raftstore.Store{
		Raft: n.raft.Raft, Now: n.clock.Now, Version: n.clusterVersion,
		Committed: func(took time.Duration) { n.observeCommit(took) },
	}
	n.members = &members{dir: n.dir, raft: n.raft, learnedAddresses: met, versions: n.cfg.versions}
	n.leadership.hint = &leaderHint{members: n.members, peers: n.peers}
	n.leadership.follow(n.raft.Raft, n.members, n.ctx.Done())
	n.assemble()
	n.instances.run(n.members, n.peers)
	n.cfg.Metrics.SetVersion(n.cfg.Version)
	return n.cfg.Metrics.Registry.Register(newNodeCollector(n))
}

// assemble creates the parts of the leader, in the order of their dependencies.
func (n *Node) assemble() {
	learners := newLearners()
	n.leaseGate = newLeaseGate(n.fsm, n.clock, n.cfg.Leases, func() ids.Term { return ids.Term(n.raft.CurrentTerm()) })
	n.fsm.OnConfiguration(n.termReports.onConfigChange)
	n.termReports.onConfigChange() // the configuration may have changed since raft started
	n.store.Foretell, n.store.Settle = n.leaseGate.revokeAhead, n.leaseGate.waitRevoked
	n.proposer = &proposer{exclusive: newCtxMutex(), ctx: n.ctx, raft: n.raft, store: n.store, leadership: n.leadership, logger: n.logger}
	n.space = &diskSpace{own: n.raft.FreeSpace, members: n.members, proposer: n.proposer, logger: n.logger}
	n.readIndex = newReadIndex(n.ctx, n.raft, n.members, n.leadership, n.peers, n.clock, n.space, n.termReports, n.instances)
	n.identityCheck = &identityCheck{fsm: n.fsm, openLimits: newRateLimits()}
	n.sessions = &sessions{
		identityCheck: n.identityCheck,
		leaseGate:     n.leaseGate,
		ctx:           n.ctx, deadlines: newSessionDeadlines(n.cfg.SessionTTL), fsm: n.fsm, members: n.members, leadership: n.leadership,
		readIndex: n.readIndex, clock: n.clock, proposer: n.proposer, clones: newClones(n.fsm, n.proposer, n.logger), rosters: new(rosters), logger: n.logger,
	}
	n.questions, n.waits = newReleaseQuestions(), newWaitQuestions()
	n.leaseRenewals = newLeaseRenewals(n.ctx, n.leaseGate.table, n.leadership, n.readIndex, n.identityCheck)
	dialer := &dialer{n.dir.ID, n.raft, n.connections()}
	n.addressBook = &addressBook{raft: n.raft, members: n.members, dialer: dialer, logger: n.logger}
	n.promoter = &promoter{
		raft: n.raft, members: n.members, leadership: n.leadership, readIndex: n.readIndex, proposer: n.proposer, dialer: dialer, logger: n.logger,
	}
	n.remover = &remover{
		raft: n.raft, members: n.members, proposer: n.proposer, learners: learners, promoter: n.promoter,
		sessions: n.sessions, revokes: n.security != nil, drainTimeout: drainTimeout, draining: make(map[string]time.Duration),
	}
	n.failureDetector = &failureDetector{
		ctx: n.ctx, removeAfter: n.cfg.RemoveDead, raft: n.raft, members: n.members, leadership: n.leadership, peers: n.peers, proposer: n.proposer,
		remover: n.remover, instances: n.instances, logger: n.logger,
	}
	n.joiner = &joiner{
		ctx: n.ctx, alone: n.cfg.Address == "", raft: n.raft, members: n.members, leadership: n.leadership,
		proposer: n.proposer, learners: learners, remover: n.remover, dialer: dialer, addressBook: n.addressBook, instances: n.instances,
		logger: n.logger,
	}
	if n.security != nil {
		n.certIssuer = &certIssuer{
			fsm: n.fsm, leadership: n.leadership, readIndex: n.readIndex, clock: n.clock, proposer: n.proposer, members: n.members,
			signer: n.newSigner(), bootstrapCA: &n.security.bootstrapCA, enrollLimits: newRateLimits(), proofLimits: newRateLimits(),
			ownKey:   func() [32]byte { return n.security.credentials.Key().Hash() },
			validity: n.cfg.certificateValidity(), rosters: n.sessions.rosters, logger: n.logger,
		}
	}
	n.stateHasher = &stateHasher{ctx: n.ctx, fsm: n.fsm, logger: n.logger}
	state := &backupSource{router: n.router, raft: n.raft, name: n.cfg.Name, program: n.cfg.Version}
	n.backups = newBackups(n.ctx, state.begin)
	n.backupSchedule = &backupSchedule{
		ctx: n.ctx, series: backup.Series{Dir: n.cfg.BackupDir, Node: n.cfg.Name, Keep: n.cfg.BackupKeep}, every: n.cfg.BackupEvery,
		begin: state.begin, metrics: n.cfg.Metrics, logger: n.logger,
	}
	n.removal = &removalWatch{ctx: n.ctx, raft: n.raft, members: n.members, peers: n.peers, join: n.cfg.Join, fail: n.fail, asked: time.Now()}
}

func (n *Node) newSigner() *caSigner {
	return &caSigner{
		fsm: n.fsm, key: n.security.credentials.Key, path: filepath.Join(n.dir.Path, consensus.SealKeyFile), seal: n.security.seal,
	}
}

func (n *Node) leaderLoop() *leaderLoop {
	return &leaderLoop{
		ctx: n.ctx, raft: n.raft, members: n.members, leadership: n.leadership, readIndex: n.readIndex, leaseGate: n.leaseGate, space: n.space,
		clock: n.clock, proposer: n.proposer, sessions: n.sessions, joiner: n.joiner, addressBook: n.addressBook, failureDetector: n.failureDetector,
		removal: n.removal, logger: n.logger,
		certIssuer: n.certIssuer, limits: func() *storepb.SetLimits { return n.cfg.limits(n.fsm) }, cluster: n.recordCluster,
		watchdogDeadline: &n.watchdogDeadline, expiredLeaseTerm: n.cfg.ExpiredLeaseTerm,
	}
}

func (n *Node) comparison() *comparison {
	return &comparison{
		ctx: n.ctx, interval: compareInterval, members: n.members, leadership: n.leadership,
		proposer: n.proposer, peers: n.peers, instances: n.instances, self: n, logger: n.logger,
	}
}

func (n *Node) versionUpgrader() *versionUpgrader {
	return &versionUpgrader{
		ctx: n.ctx, fsm: n.fsm, raft: n.raft, members: n.members, leadership: n.leadership, proposer: n.proposer, peers: n.peers, self: n,
		logger: n.logger,
	}
}

// clusterVersion returns the version of the cluster, as far as this node has applied the log.
func (n *Node) clusterVersion() (at uint32) {
	n.fsm.View(func(ns *namespace.Namespace) { at = ns.Version() })
	return at
}

// InClusterError reports a data directory that belongs to a cluster already.
type InClusterError struct {
	Dir     string
	Node    string // name of the server
	Cluster string // id
}

func (e *InClusterError) Error() string {
	return fmt.Sprintf("data directory %s belongs to cluster %s already, and %s is a server of that: start it with `lockfs server`", e.Dir, e.Cluster, e.Node)
}

// Bootstrap makes a data directory that of the first server of a new cluster, and returns the cluster's
// id. It does not start the server: [Open] does, without Config.Bootstrap. After an interruption call it
// again with the same Config. The error is an [InClusterError] if nothing is left to do.
//
// Bootstrap is a separate step, because a server started on an empty disk cannot know whether its cluster
// is new, or its disk.
func Bootstrap(cfg Config) (cluster string, err error) {
	cfg.Bootstrap = true
	if err := cfg.validate(); err != nil {
		return "", err
	}
	n := newNode(cfg)
	defer func() {
		if n.dir != nil {
			err = errors.Join(err, n.dir.Close())
		}
	}()
	if err := n.openDirectory(); err != nil {
		return "", err
	}
	if n.dir.HasJoined() {
		return "", &InClusterError{Dir: n.dir.Path, Node: n.dir.Name, Cluster: n.dir.ClusterID()}
	}
	return n.dir.ClusterID(), n.bootstrap()
}

// hangUp closes the server once the node has stepped down.
func (n *Node) hangUp() {
	select {
	case <-n.stepDown.Done():
		n.stopServing()
	case <-n.ctx.Done():
	}
}

// Close stops the node. Everything it acknowledged is on disk.
func (n *Node) Close() error {
	n.cancel()
	if n.server != nil {
		n.server.Close()
		n.joinServer.Close()
	}
	var errs []error
	if n.raft != nil {
		n.cfg.Metrics.Registry.Unregister(newNodeCollector(n)) // so that this process can open another node
		errs = append(errs, n.raft.Close())
	}
	if n.port != nil {
		errs = append(errs, n.port.Close())
	}
	if n.peers != nil {
		n.peers.Close()
		n.forwarder.Close()
	}
	if n.audit != nil {
		errs = append(errs, n.audit.close())
	}
	if n.dir != nil {
		errs = append(errs, n.dir.Close())
	}
	return errors.Join(errs...)
}
