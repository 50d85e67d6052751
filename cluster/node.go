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

// Node is a running voter.
type Node struct {
	cfg                Config
	dir                *consensus.Directory
	logger             *slog.Logger
	ctx                context.Context // ends when the node is closed
	cancel             context.CancelFunc
	failed             chan error
	newer              sync.Once // a mount is of a newer version
	connectionRefusals connectionRefusals
	failure            context.Context // ends, for a cause, when the node cannot go on
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
	joiner          *joiner
	remover         *remover
	promoter        *promoter
	addressBook     *addressBook
	failureDetector *failureDetector
	removal         *removalWatch
	identityCheck   *identityCheck
	certIssuer      *certIssuer // nil: there are no certificates
	audit           *auditFollower
	stateHasher     *stateHasher
	backups         *backups
	backupSchedule  *backupSchedule
	latency         *latencyWindow

	security         *security // nil: connections are plain, or there are none
	peers            *rpc.Peers
	router           *rpc.Router // for what this node itself asks the leader
	forwarder        *rpc.Forwarder
	port             *rpc.Port // nil: none
	server           *rpc.Server
	joinServer       *rpc.Server
	mount            atomic.Pointer[string]
	watchdogDeadline atomic.Pointer[time.Time] // see RoundDue
}

// fail says that the node cannot go on. Only the first reason counts.
func (n *Node) fail(err error) {
	n.markFailed(err)
	select {
	case n.failed <- err:
	default:
	}
}

// onApplyFailure ends the node at an entry. If it leads, the others need not wait for the end of the process.
func (n *Node) onApplyFailure(err error) {
	defer n.stepDown.Begin()
	n.fail(explainApplyFailure(err, n.cfg.DataDir, n.logger))
}

// replaced ends this process, which must not be taken for this server any more.
func (n *Node) replaced(err error) {
	n.stepDown.Begin()
	n.fail(err)
}

// Failed delivers the reason when the node cannot go on; the process is to end then.
func (n *Node) Failed() <-chan error { return n.failed }

// WatchdogDeadline is by when the loop in which this node leads, or waits to, is to begin anew, whether others answer or not.
func (n *Node) WatchdogDeadline() time.Time { return *n.watchdogDeadline.Load() }

// ID is that of this voter, which another one in its place will not have.
func (n *Node) ID() string { return n.dir.ID }

// SetMount notes where this process has mounted the namespace, for the status.
func (n *Node) SetMount(dir string) { n.mount.Store(&dir) }

func (n *Node) mountPoint() string {
	if dir := n.mount.Load(); dir != nil {
		return *dir
	}
	return ""
}

// connectionRefusals is what has been said of those whom the node does not answer.
type connectionRefusals struct {
	crowded sync.Once

	mu     sync.Mutex
	failed map[string]bool // addresses whose handshakes failed
}
