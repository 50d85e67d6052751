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

// DefaultOpTimeout is the default timeout of an operation, in running time of this process.
const DefaultOpTimeout = 15 * time.Second

// Client executes operations on the namespace for one mount, in a session with keepalives.
type Client struct {
	router           *rpc.Router
	local            atomic.Pointer[Voter]           // in this process; nil: there is none
	peers            *rpc.Peers                      // closed with the client; nil when a node owns them
	before           atomic.Pointer[rpc.Node]        // node for requests of any kind before Attach; nil before that
	settled          chan struct{}                   // closed by Attach
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
	ttl              atomic.Int64 // nanoseconds; 0: unknown yet
	offset           atomic.Int64 // of this host's clock, as last measured; see Offset
	ahead            atomic.Int64 // cluster time less CLOCK_BOOTTIME; see ClusterTime
	took             atomic.Int64 // duration of that keepalive in nanoseconds
	leader           atomic.Pointer[string]
	holders          *holders
	voterProbe       voterProbe
	noDelay          bool
	versions         version.Range             // supported cluster versions
	program          string                    // version of the program
	runsAt           atomic.Uint32             // last known cluster version; 0: unknown
	watchdogDeadline atomic.Pointer[time.Time] // see WatchdogDeadline
	creatorsWanted   atomic.Int64              // CLOCK_BOOTTIME until which commands have lineages

	ctx          context.Context // ends when the client closes
	cancel       context.CancelFunc
	alive        context.Context // ends with the keepalives
	rest         context.CancelFunc
	leaving      chan struct{} // closed when no new call may begin
	leave        sync.Once
	left         atomic.Bool   // the session ends or has ended: its locks may have new owners
	stopped      chan struct{} // closed after the last keepalive
	settling     tasks
	abandoned    pendingCalls
	availability availability

	voters atomic.Uint64 // identifies the voters, as last reported or looked up

	number        uint64 // distinguishes the clients of a session
	waitsQuestion *waitsQuestion
	waits         *lockWaits
	changes       *changeWaits
	leases        *lease.Cache
	givesLeases   atomic.Bool   // the leader grants leases
	leaseBegun    chan struct{} // holds one element
	locked        chan struct{} // holds one element: a flock or fcntl lock was requested
	returned      chan struct{} // closed after the release of the last lease
}

// Config configures a client.
type Config struct {
	Host        string        // name of this host, recorded as the caller's
	OpTimeout   time.Duration // 0: DefaultOpTimeout
	SessionFile string        // lets a later process take the session over; empty: disabled
	Inherited   *os.File      // session file from another process (Client.HandOver), instead of SessionFile
	// Begun gets a client with an inherited session when its tasks may run, before the first reply; may be
	// nil.
	Begun        func(*Client)
	MachineFiles []string                        // for a machine id: the first existing or writable file
	Security     *rpc.Security                   // of connections made by Dial; nil: plain
	Heard        func(*clusterpb.KeepAliveReply) // gets each keepalive reply; may be nil
	Roster       func() uint64                   // version of the host's roster, for keepalives; may be nil
	NoLockDelay  bool                            // its advisory locks need no delay after the session
	Versions     version.Range                   // supported cluster versions; zero: version.Own
	Program      string                          // version of the program, for people
	Logger       *slog.Logger

	cluster string // id of the cluster of the servers; empty: unknown
}

// Voter is a voter in the client's process.
type Voter interface {
	rpc.Node
	// QuerySince answers from its own state if that is recent enough for the query; else it returns nil.
	QuerySince(*storepb.Query) *storepb.Result
	// FollowLeader calls leads with the address of each new leader, until ctx ends. The address is empty if
	// this voter leads.
	FollowLeader(ctx context.Context, leads func(address string))
	// TermReport returns the voter's id, instance and current raft term.
	TermReport() (id string, instance ids.Instance, term ids.Term)
}
