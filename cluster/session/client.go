package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// DefaultOpTimeout is how long one operation may wait for the cluster, while this process runs.
const DefaultOpTimeout = 15 * time.Second

// inFlight bounds a client's operations that are under way or not settled yet. It is well below
// raftstore.MaxReplies.
const inFlight = 1024

// Client does operations on the namespace for one mount, in a session that it keeps alive.
type Client struct {
	router     *rpc.Router
	near       Voter      // of this process; nil: there is none
	peers      *rpc.Peers // closed with the client; nil when a node owns them
	logger     *slog.Logger
	host       string
	bootID     string
	machine    string
	started    time.Duration // on CLOCK_BOOTTIME
	timeout    time.Duration
	journal    *journal
	slots      chan int // free slots of the journal
	current    *current
	hurried    chan struct{}
	offset     atomic.Int64 // see Offset
	ahead      atomic.Int64 // cluster time less CLOCK_BOOTTIME; see ClusterTime
	leader     atomic.Pointer[string]
	holders    *holders
	witness    witness
	noDelay    bool
	asksMakers atomic.Int64 // until when, on CLOCK_BOOTTIME, makers of names are told without being asked for

	ctx       context.Context // ends when the client is closed
	cancel    context.CancelFunc
	alive     context.Context // ends when no more keepalives are to be sent
	rest      context.CancelFunc
	leaving   chan struct{} // closed when nothing more may begin
	leave     sync.Once
	stopped   chan struct{} // closed when the keepalives have stopped
	settling  sync.WaitGroup
	unsettled unsettled
	silence   silence
}

// Config is what a client is opened with.
type Config struct {
	Host         string        // name of this host, recorded as the caller's
	OpTimeout    time.Duration // 0: DefaultOpTimeout
	SessionFile  string        // lets a process that succeeds this one take the session over; empty: none can
	MachineFiles []string      // where an id of this machine is kept, if the system has none: the first that is there or can be made
	NoLockDelay  bool          // nobody relies on its advisory locks once the session has ended, so others need not wait
	Logger       *slog.Logger
}

// Voter is a voter in the process of its client.
type Voter interface {
	rpc.Node
	// QuerySince answers from its own state if that is new enough for the query, which says so; else nil.
	QuerySince(*storepb.Query) *storepb.Result
	// Word is its id and the term that it is in now.
	Word() (id string, term uint64)
}

// Open opens a session through the voter of this process, which knows other nodes by their addresses. It waits for a leader
// until ctx ends.
func Open(ctx context.Context, near Voter, peers *rpc.Peers, cfg Config) (*Client, error) {
	return openClient(ctx, near, rpc.NewRouter(peers, near), nil, cfg)
}

// Dial opens a session through the servers with these API addresses. It waits for a leader until ctx ends.
func Dial(ctx context.Context, servers []string, cfg Config) (*Client, error) {
	peers := rpc.NewPeers()
	client, err := openClient(ctx, nil, rpc.NewRoamingRouter(peers, peers.Nodes(servers)...), peers, cfg)
	if err != nil {
		peers.Close()
	}
	return client, err
}

func openClient(ctx context.Context, near Voter, via *rpc.Router, own *rpc.Peers, cfg Config) (*Client, error) {
	if cfg.OpTimeout == 0 {
		cfg.OpTimeout = DefaultOpTimeout
	}
	c := &Client{
		router: via, near: near, peers: own, logger: cfg.Logger, host: cfg.Host, bootID: readBootID(), machine: machineID(cfg), started: hostinfo.BootTime(), timeout: cfg.OpTimeout,
		noDelay: cfg.NoLockDelay, slots: make(chan int, inFlight), current: newCurrent(),
		hurried: make(chan struct{}, 1), stopped: make(chan struct{}), leaving: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.alive, c.rest = context.WithCancel(c.ctx)
	for slot := range inFlight {
		c.slots <- slot
	}
	var left *journalState
	var others []*journal
	var err error
	if c.journal, left, others, err = openJournal(cfg.SessionFile, c.bootID); err != nil {
		return nil, err
	}
	var session *clientSession
	if c.holders, err = newHolders(c); err == nil {
		session, err = c.begin(ctx, left)
	}
	for _, other := range others {
		if err == nil {
			err = other.discard() // nothing in it is pending any more
		}
		err = errors.Join(err, other.letGo())
	}
	if err != nil {
		c.cancel()
		if c.holders != nil {
			err = errors.Join(err, c.holders.close())
		}
		if left.session == 0 {
			err = errors.Join(err, c.journal.discard())
		}
		return nil, errors.Join(err, c.journal.close())
	}
	c.current.set(nil, session)
	go c.keepAlive()
	c.holders.run()
	return c, nil
}
