package session

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// DefaultOpTimeout is how long one operation may wait for the cluster, while this process runs.
const DefaultOpTimeout = 15 * time.Second

// Client does operations on the namespace for one mount, in a session that it keeps alive.
type Client struct {
	router           *rpc.Router
	local            atomic.Pointer[Voter]           // of this process; nil: there is none
	peers            *rpc.Peers                      // closed with the client; nil when a node owns them
	before           atomic.Pointer[rpc.Node]        // who was asked for what any node can answer until the client settled; nil: it has not
	settled          chan struct{}                   // closed when it has
	onKeepalive      func(*clusterpb.KeepAliveReply) // may be nil
	roster           func() uint64                   // may be nil
	logger           *slog.Logger
	host             string
	bootID           string
	machine          string
	started          time.Duration // on CLOCK_BOOTTIME
	timeout          time.Duration
	journal          *journal
	slots            chan int // free slots of the journal
	active           *activeSession
	cluster          *clusterBinding
	keepaliveDue     chan struct{}
	ttl              atomic.Int64 // of the session, nanoseconds; 0: not known yet
	offset           atomic.Int64 // of this host's clock, as last measured; see Offset
	ahead            atomic.Int64 // cluster time less CLOCK_BOOTTIME; see ClusterTime
	took             atomic.Int64 // nanoseconds that the keepalive took which told it
	leader           atomic.Pointer[string]
	holders          *holders
	voterProbe       voterProbe
	noDelay          bool
	versions         version.Range             // of a cluster, that this program knows
	runsAt           atomic.Uint32             // the cluster, when it was heard of last; 0: it was not
	watchdogDeadline atomic.Pointer[time.Time] // see RoundDue
	creatorsWanted   atomic.Int64              // until when, on CLOCK_BOOTTIME, makers of names are told without being asked for

	ctx          context.Context // ends when the client is closed
	cancel       context.CancelFunc
	alive        context.Context // ends when no more keepalives are to be sent
	rest         context.CancelFunc
	leaving      chan struct{} // closed when nothing more may begin
	leave        sync.Once
	left         atomic.Bool   // the session ends, or has ended: what was locked in it may be somebody else's
	stopped      chan struct{} // closed when the keepalives have stopped
	settling     tasks
	abandoned    pendingCalls
	availability availability

	voters atomic.Uint64 // those that a keepalive told of last, or is asked for

	number        uint64 // of this client, among those of a session
	waitsQuestion *waitsQuestion
	waits         *lockWaits
	changes       *changeWaits
	leases        *lease.Cache
	givesLeases   atomic.Bool   // the leader does
	leaseBegun    chan struct{} // holds one
	locked        chan struct{} // holds one: a flock or fcntl lock was taken or asked for
	returned      chan struct{} // closed when the last lease has been given back
}

// Config is what a client is opened with.
type Config struct {
	Host         string                          // name of this host, recorded as the caller's
	OpTimeout    time.Duration                   // 0: DefaultOpTimeout
	SessionFile  string                          // lets a process that succeeds this one take the session over; empty: none can
	Inherited    *os.File                        // a session file that another process handed over (Client.HandOver), in place of SessionFile
	Begun        func(*Client)                   // is told the client that goes on with that session as soon as it may settle, before anybody has answered; may be nil
	MachineFiles []string                        // where an id of this machine is kept, if the system has none: the first that is there or can be made
	Security     *rpc.Security                   // of the connections to servers that Dial makes; nil: they are plain
	Heard        func(*clusterpb.KeepAliveReply) // is told the answer to each keepalive; may be nil
	Roster       func() uint64                   // version of the roster of servers that the host has, which keepalives tell; may be nil
	NoLockDelay  bool                            // nobody relies on its advisory locks once the session has ended, so others need not wait
	Versions     version.Range                   // of a cluster, that the program knows; none: version.Own
	Logger       *slog.Logger

	cluster string // id of the one that the servers belong to; empty: none has said
}

// Voter is a voter in the process of its client.
type Voter interface {
	rpc.Node
	// QuerySince answers from its own state if that is new enough for the query, which says so; else nil.
	QuerySince(*storepb.Query) *storepb.Result
	// FollowLeader tells of each leader that it learns of by its address, of itself by none, until ctx ends.
	FollowLeader(ctx context.Context, leads func(address string))
	// TermReport is its id and the term that it is in now.
	TermReport() (id string, instance ids.Instance, term ids.Term)
}
