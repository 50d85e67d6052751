package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/fault"
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
	holder     *holder
	hurried    chan struct{}
	offset     atomic.Int64 // see Offset
	ahead      atomic.Int64 // cluster time less CLOCK_BOOTTIME; see ClusterTime
	leader     atomic.Pointer[string]
	holders    *holders
	witness    witness
	noDelay    bool
	asksMakers atomic.Int64 // until when, on CLOCK_BOOTTIME, makers of names are told without being asked for

	ctx      context.Context // ends when the client is closed
	cancel   context.CancelFunc
	alive    context.Context // ends when no more keepalives are to be sent
	rest     context.CancelFunc
	leaving  chan struct{} // closed when nothing more may begin
	leave    sync.Once
	stopped  chan struct{} // closed when the keepalives have stopped
	settling sync.WaitGroup
	givenUp  givenUp
	silence  silence
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
		noDelay: cfg.NoLockDelay, slots: make(chan int, inFlight), holder: newHolder(),
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
	c.holder.set(nil, session)
	go c.keepAlive()
	c.holders.run()
	return c, nil
}

// begin settles the calls that an earlier process had under way, if there was one, for nobody was told their results, and
// takes its session over. Only then: what the process had locked goes with that, so nothing of it may come later.
func (c *Client) begin(ctx context.Context, left *journalState) (*clientSession, error) {
	var session *clientSession
	var err error
	for _, call := range left.pending {
		if err := c.void(ctx, call); err != nil {
			return nil, err
		}
	}
	if left.session != 0 {
		session, err = c.open(ctx, left.session, newNumbers(left.last))
		if err == nil {
			c.logger.Info("took over the session of an earlier process", "session", session.id, "unsettled", len(left.pending))
		} else if refused := new(rpc.RefusedError); !errors.As(err, &refused) {
			return nil, err
		}
	}
	if session == nil {
		if session, err = c.openFirst(ctx); err != nil {
			return nil, err
		}
	}
	for slot := range inFlight {
		c.journal.end(slot)
	}
	return session, nil
}

// errForgotten tells of a mount that was away for too long.
var errForgotten = errors.New("the cluster does not know any more what became of the call: its session ended too long ago")

// Mutate commits one change and returns its result once a majority has it on disk. An error wraps
// context.DeadlineExceeded: no majority answered in time, or none has answered any call for that long. What the operation
// created exclusively is then taken back as soon as one does, unless others use it, or never comes to be.
func (c *Client) Mutate(ctx context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error) {
	return c.Create(ctx, caller, op, nil)
}

// Create is Mutate for what makes a name. answer renders what will tell the kernel of success, for a
// [Guard] to do it should this process be killed first; it may be nil, and may answer nil.
//
// Content goes with what it says about its lock, and a holder that it names is watched from then on.
func (c *Client) Create(
	asked context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, error) {
	if err := c.mayAsk(aCommand); err != nil {
		return nil, err
	}
	ctx, cancel := c.patience(asked, aCommand)
	defer cancel()
	write, names := op.GetSetContent(), makesName(op)
	if write != nil {
		write.Facts = c.holders.describe(caller, write.GetContent())
	}
	if target := op.GetCreate().GetTarget(); len(target) > 0 {
		op.GetCreate().Facts = c.holders.evidence(caller, target)
	}
	c.holders.introduceCaller(caller, op)
	if names && hostinfo.BootTime() < time.Duration(c.asksMakers.Load()) {
		c.holders.introduceMaker(caller)
	}
	result, _, err := c.create(ctx, caller, op, answer)
	if err == nil && result.GetCode() == storepb.Code_NEED_LINEAGE {
		c.holders.introduceMaker(caller)
		if names {
			c.asksMakers.Store(int64(hostinfo.BootTime() + asksMaker))
		}
		result, _, err = c.create(ctx, caller, op, answer)
	}
	if err != nil || result.GetCode() != storepb.Code_OK {
		return result, err
	}
	c.holders.watch(write.GetFacts().GetProcess())
	if names {
		c.holders.watchMaker(caller)
	}
	return result, nil
}

func makesName(op *storepb.Op) bool {
	return op.GetCreate() != nil || op.GetLink() != nil || op.GetRename() != nil
}

// GoesOn says that a thread has been told of what it created.
func (c *Client) GoesOn(thread uint32) { c.journal.goesOn(thread) }

// create is createIn in whichever session is in use.
func (c *Client) create(
	ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (result *storepb.Result, seq uint64, err error) {
	return c.createIn(ctx, 0, caller, op, answer)
}

// createIn answers the number under which it was done, too. It begins once what was given up before is settled. An error comes
// with the code CANCELLED if the cluster was never asked (see notAsked). If only one session will do and it has ended, the result
// is SESSION_LOST.
func (c *Client) createIn(
	ctx context.Context, only uint64, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (result *storepb.Result, seq uint64, err error) {
	if err := c.givenUp.await(ctx); err != nil {
		return notAsked(fmt.Errorf("what was given up before is not settled: %w", err))
	}
	slot, err := c.takeSlot(ctx)
	if err != nil {
		return notAsked(err)
	}
	caller.Host = c.host
	for {
		session, err := c.live(ctx)
		if err != nil {
			c.journal.end(slot)
			c.slots <- slot
			return notAsked(err)
		}
		if only != 0 && session.id != only {
			c.journal.end(slot)
			c.slots <- slot
			return &storepb.Result{Code: storepb.Code_SESSION_LOST}, 0, nil
		}
		cmd := &storepb.Command{Session: session.id, Caller: caller, Op: op}
		cmd.Seq, cmd.Acked = session.numbers.take(func(seq uint64) { c.journal.begin(slot, session.id, seq) })
		result, err := c.send(ctx, cmd)
		if err == nil {
			err = fault.LoseAnswer(ctx, op.GetCreate().GetName())
		}
		if err == nil && session.fenced() {
			_, err = c.live(ctx) // this host slept: look around before answering
		}
		if err == nil {
			err = ctx.Err() // nobody waits for the answer any more
		}
		if err != nil {
			c.settling.Add(1)
			c.givenUp.begin()
			go c.settle(session, cmd.Seq, slot)
			return nil, 0, err
		}
		if result.GetCode() == storepb.Code_SESSION_UNKNOWN {
			session.numbers.done(cmd.Seq)
			c.lose(session) // the command was not done and never will be: do it in another session
			continue
		}
		if result.GetCode() == storepb.Code_SESSION_FORGOTTEN {
			session.numbers.done(cmd.Seq)
			c.journal.end(slot)
			c.slots <- slot
			c.lose(session)
			return nil, 0, errForgotten
		}
		told := answer != nil && result.GetCode() == storepb.Code_OK
		if told {
			c.journal.promise(slot, caller.GetPid(), answer(result))
		}
		c.journal.end(slot)
		if told {
			fault.DieAnswering()
		}
		// Only now may the cluster forget how to take it back: while the journal has the call, a successor
		// would want to.
		session.numbers.done(cmd.Seq)
		c.slots <- slot
		return result, cmd.Seq, nil
	}
}

// errLeaving is what calls are told that come while the mount ends.
var errLeaving = errors.New("the mount ends")

func (c *Client) takeSlot(ctx context.Context) (slot int, err error) {
	select {
	case <-c.leaving:
		return 0, errLeaving
	default:
	}
	select {
	case slot := <-c.slots:
		return slot, nil
	case <-c.leaving:
		return 0, errLeaving
	case <-ctx.Done():
		return 0, fmt.Errorf("too many operations wait for the cluster: %w", ctx.Err())
	}
}

// notAsked is what there is instead of the result of a command that was not sent: it was not done, and never will be.
func notAsked(err error) (*storepb.Result, uint64, error) {
	return &storepb.Result{Code: storepb.Code_CANCELLED}, 0, err
}

// Query answers from the state as it is after everything that was acknowledged before. An error wraps
// context.DeadlineExceeded (see Create), or why ctx has ended.
func (c *Client) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if c.near != nil {
		if result := c.near.QuerySince(query); result != nil {
			return result, nil
		}
	}
	if !waits(query) {
		if err := c.mayAsk(anything); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.patience(ctx, anything)
	defer cancel()
	result, err := c.query(ctx, query)
	if err == nil && query.GetSince() == 0 && query.GetAwaitLock() == nil { // which one node may answer by itself
		c.answered(anything)
	}
	return result, err
}

// waits tells of queries that are answered when something happens. Whoever asks them waits anyway, again and again.
func waits(query *storepb.Query) bool {
	return query.GetListEvents().GetWait() || query.GetAwaitChange() != nil || query.GetAwaitLock() != nil
}

func (c *Client) query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	request := &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}}
	if c.near != nil {
		request.Voter, request.Term = c.near.Word()
		return c.execute(ctx, request)
	}
	return c.queryWitnessed(ctx, request)
}

func (c *Client) send(ctx context.Context, cmd *storepb.Command) (*storepb.Result, error) {
	result, err := c.execute(ctx, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: cmd}})
	if err == nil {
		c.answered(aCommand)
	}
	return result, err
}

func (c *Client) execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*storepb.Result, error) {
	reply, err := rpc.Ask(ctx, c.router, rpc.Node.Execute, req)
	return reply.GetResult(), err
}

// settle goes on until the cluster has recorded that a number is void, and only then acknowledges it.
func (c *Client) settle(session *clientSession, seq uint64, slot int) {
	defer c.settling.Done()
	defer c.givenUp.end()
	if err := c.void(c.ctx, pendingCall{session.id, seq}); err != nil {
		c.logger.Error("closed before the outcome of a call was settled", "session", session.id, "seq", seq, "error", err)
		return
	}
	session.numbers.done(seq)
	c.journal.end(slot)
	c.slots <- slot
}

// void makes a call leave nothing behind whose result nobody was told.
func (c *Client) void(ctx context.Context, call pendingCall) error {
	op := &storepb.Op{Op: &storepb.Op_Cancel{Cancel: &storepb.Cancel{Seq: call.seq}}}
	result, err := c.send(ctx, &storepb.Command{Session: call.session, Op: op})
	if err != nil {
		return fmt.Errorf("settle a call: %w", err)
	}
	if result.GetCode() != storepb.Code_OK {
		c.logger.Error("what became of a call cannot be told any more",
			"session", call.session, "seq", call.seq, "code", result.GetCode())
	}
	return nil
}

// Close is Leave where no program relies on anything any more.
func (c *Client) Close(ctx context.Context) error {
	return c.Leave(ctx, func() bool { return false })
}

// Leave ends the session. Nothing more begins; what is under way or unsettled, and its own farewell, have until ctx ends;
// a successor can take over what could not be said. inUse is asked at the last moment whether programs may go on relying on
// what they have: their advisory locks wait for the lock delay then.
func (c *Client) Leave(ctx context.Context, inUse func() bool) error {
	c.leave.Do(func() { close(c.leaving) })
	err := c.finishCalls(ctx)
	c.rest() // a keepalive after the farewell would hear that the session has ended, and another one would be opened
	<-c.stopped
	if err == nil {
		err = c.farewell(ctx, inUse())
	}
	c.cancel()
	err = errors.Join(err, c.holders.close())
	if err == nil {
		err = c.journal.discard()
	}
	c.settling.Wait()
	if c.peers != nil {
		c.peers.Close()
	}
	return errors.Join(err, c.journal.close())
}

// finishCalls waits for the calls under way, and for those given up to be settled: after the farewell nobody could learn
// what became of them. Their slots are not given back.
func (c *Client) finishCalls(ctx context.Context) error {
	for range inFlight {
		select {
		case <-c.slots:
		case <-ctx.Done():
			return fmt.Errorf("calls are under way: %w", ctx.Err())
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	return nil
}

func (c *Client) farewell(ctx context.Context, inUse bool) error {
	session, _ := c.holder.get()
	if session == nil {
		return nil
	}
	op := &storepb.Op{Op: &storepb.Op_CloseSession{CloseSession: &storepb.CloseSession{InUse: inUse}}}
	if _, err := c.send(ctx, &storepb.Command{Session: session.id, Op: op}); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}
