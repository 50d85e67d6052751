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
	cfg    Config
	dir    *consensus.Directory
	logger *slog.Logger
	ctx    context.Context // ends when the node is closed
	cancel context.CancelFunc
	failed chan error
	newer  sync.Once // a mount is of a newer version
	turned turnedAway
	broken context.Context // ends, for a cause, when the node cannot go on
	breaks context.CancelCauseFunc

	silence    *consensus.Withdrawal
	raft       *consensus.Raft
	fsm        *raftstore.FSM
	store      *raftstore.Store
	clock      *clock
	members    *members
	leadership *leadership
	readIndex  *readIndex
	shown      *shown
	words      *words
	instances  *instances
	space      *diskSpace
	changes    *changes
	sessions   *sessions
	renewals   *renewals
	questions  *releaseQuestions
	admission  *admission
	expulsion  *expulsion
	suffrage   *suffrage
	moves      *moves
	vigil      *vigil
	removal    *removalWatch
	binding    *binding
	enrollment *enrollment // nil: there are no certificates
	audit      *auditTrail
	frozen     *frozenState
	backups    *backups
	ownBackups *ownBackups
	recent     *recent

	security   *security // nil: connections are plain, or there are none
	peers      *rpc.Peers
	router     *rpc.Router // for what this node itself asks the leader
	forwarder  *rpc.Forwarder
	port       *rpc.Port // nil: none
	server     *rpc.Server
	joinServer *rpc.Server
	mount      atomic.Pointer[string]
	roundDue   atomic.Pointer[time.Time] // see RoundDue
}

// fail says that the node cannot go on. Only the first reason counts.
func (n *Node) fail(err error) {
	n.breaks(err)
	select {
	case n.failed <- err:
	default:
	}
}

// cannotApply ends the node at an entry. If it leads, the others need not wait for the end of the process.
func (n *Node) cannotApply(err error) {
	defer n.silence.Begin()
	n.fail(whyCannotApply(err, n.cfg.DataDir, n.logger))
}

// replaced ends this process, which must not be taken for this server any more.
func (n *Node) replaced(err error) {
	n.silence.Begin()
	n.fail(err)
}

// Failed delivers the reason when the node cannot go on; the process is to end then.
func (n *Node) Failed() <-chan error { return n.failed }

// RoundDue is by when the loop in which this node leads, or waits to, is to begin anew, whether others answer or not.
func (n *Node) RoundDue() time.Time { return *n.roundDue.Load() }

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

// turnedAway is what has been said of those whom the node does not answer.
type turnedAway struct {
	crowded sync.Once

	mu     sync.Mutex
	failed map[string]bool // addresses whose handshakes failed
}
