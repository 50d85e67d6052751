package cluster

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
)

// Node is a running server.
type Node struct {
	cfg                Config
	dir                *consensus.Directory
	logger             *slog.Logger
	ctx                context.Context // ends when the node is closed
	cancel             context.CancelFunc
	failed             chan error
	newer              sync.Once // logs the first mount of a newer version
	connectionRefusals connectionRefusals
	failure            context.Context // ends, with a cause, when the node cannot continue
	markFailed         context.CancelCauseFunc

	stepDown        *consensus.StepDown
	raft            *consensus.Raft
	fsm             *raftstore.FSM
	store           *raftstore.Store
	clock           *clock
	members         *members
	leadership      *leadership
	readIndex       *readIndex
	leaseGate       *leaseGate
	termReports     *termReports
	instances       *instances
	space           *diskSpace
	proposer        *proposer
	sessions        *sessions
	leaseRenewals   *leaseRenewals
	questions       *releaseQuestions
	waits           *waitQuestions
	joiner          *joiner
	remover         *remover
	promoter        *promoter
	addressBook     *addressBook
	failureDetector *failureDetector
	removal         *removalWatch
	identityCheck   *identityCheck
	certIssuer      *certIssuer // nil: no certificates
	audit           *auditFollower
	stateHasher     *stateHasher
	backups         *backups
	backupSchedule  *backupSchedule
	latency         *latencyWindow

	security         *security // nil: plain connections, or no network
	peers            *rpc.Peers
	router           *rpc.Router // to the leader, for this node's own requests
	forwarder        *rpc.Forwarder
	port             *rpc.Port // nil: no network
	server           *rpc.Server
	joinServer       *rpc.Server
	mount            atomic.Pointer[string]
	watchdogDeadline atomic.Pointer[time.Time] // see WatchdogDeadline
}

// fail reports that the node cannot continue. Only the first reason counts.
func (n *Node) fail(err error) {
	n.markFailed(err)
	select {
	case n.failed <- err:
	default:
	}
}

// onApplyFailure ends the node at an entry. The others elect a new leader without waiting for the end of
// the process.
func (n *Node) onApplyFailure(err error) {
	defer n.stepDown.Begin()
	n.fail(explainApplyFailure(err, n.cfg.DataDir, n.logger))
}

// replaced ends this process: the cluster follows another process as this server.
func (n *Node) replaced(err error) {
	n.stepDown.Begin()
	n.fail(err)
}

// Failed delivers the reason when the node cannot continue. The process should end then.
func (n *Node) Failed() <-chan error { return n.failed }

// WatchdogDeadline returns the time by which the leader loop starts its next round, even if no other node
// answers.
func (n *Node) WatchdogDeadline() time.Time { return *n.watchdogDeadline.Load() }

// ID returns the raft id of this server. A replacement has another one.
func (n *Node) ID() string { return n.dir.ID }

// SetMount records the mount point of this process for the status.
func (n *Node) SetMount(dir string) { n.mount.Store(&dir) }

func (n *Node) mountPoint() string {
	if dir := n.mount.Load(); dir != nil {
		return *dir
	}
	return ""
}

// connectionRefusals records which refused connections were logged.
type connectionRefusals struct {
	crowded sync.Once

	mu     sync.Mutex
	failed map[string]bool // addresses with a failed handshake
}
