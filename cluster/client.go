package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// DefaultOpTimeout is how long one operation may wait for the cluster.
const DefaultOpTimeout = 15 * time.Second

// inFlight bounds a session's operations that are under way or not settled yet. It is well below
// raftstore.MaxReplies.
const inFlight = 1024

// Client does operations on the namespace for one mount, in a session of its own.
type Client struct {
	router  *router
	peers   *peers // closed with the client; nil when the node owns them
	logger  *slog.Logger
	host    string
	timeout time.Duration
	session uint64
	numbers *numbers
	slots   chan struct{} // one taken by each operation in flight

	ctx      context.Context // ends when the client is closed
	cancel   context.CancelFunc
	settling sync.WaitGroup
}

// ClientConfig is what a client is opened with.
type ClientConfig struct {
	Host      string        // name of this host, recorded as the caller's
	OpTimeout time.Duration // 0: DefaultOpTimeout
	Logger    *slog.Logger
}

// OpenClient opens a session through the node of this process. It waits for a leader until ctx ends.
func (n *Node) OpenClient(ctx context.Context, cfg ClientConfig) (*Client, error) {
	return openClient(ctx, &router{peers: n.peers, entry: []clusterpb.NodeClient{n.local()}}, cfg)
}

func openClient(ctx context.Context, via *router, cfg ClientConfig) (*Client, error) {
	if cfg.OpTimeout == 0 {
		cfg.OpTimeout = DefaultOpTimeout
	}
	c := &Client{
		router: via, logger: cfg.Logger, host: cfg.Host, timeout: cfg.OpTimeout,
		session: newSessionID(), numbers: newNumbers(), slots: make(chan struct{}, inFlight),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	op := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: cfg.Host}}}
	result, err := c.send(ctx, &storepb.Command{Session: c.session, Op: op})
	if err == nil && result.GetCode() != storepb.Code_OK {
		err = &refusedError{result}
	}
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	return c, nil
}

// newSessionID draws an id that no other session has; 0 means no session.
func newSessionID() uint64 {
	var random [8]byte
	for {
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		if id := binary.LittleEndian.Uint64(random[:]); id != 0 {
			return id
		}
	}
}

// Mutate commits one change and returns its result once a majority has it on disk. An error wraps
// context.DeadlineExceeded: no majority answered in time. What the operation created is then taken
// back as soon as one does, or never comes to be.
func (c *Client) Mutate(ctx context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("too many operations wait for the cluster: %w", ctx.Err())
	}
	caller.Host = c.host
	cmd := &storepb.Command{Session: c.session, Caller: caller, Op: op}
	cmd.Seq, cmd.Acked = c.numbers.take()
	result, err := c.send(ctx, cmd)
	if err != nil {
		c.settling.Add(1)
		go c.settle(cmd.Seq)
		return nil, err
	}
	c.finish(cmd.Seq)
	return result, nil
}

func (c *Client) finish(seq uint64) {
	c.numbers.done(seq)
	<-c.slots
}

// Query answers from the state as it is after everything that was acknowledged before. An error wraps
// context.DeadlineExceeded.
func (c *Client) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.execute(ctx, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}})
}

func (c *Client) send(ctx context.Context, cmd *storepb.Command) (*storepb.Result, error) {
	return c.execute(ctx, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: cmd}})
}

func (c *Client) execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*storepb.Result, error) {
	var result *storepb.Result
	err := c.router.do(ctx, func(ctx context.Context, to clusterpb.NodeClient) (answer, error) {
		reply, err := to.Execute(ctx, req)
		result = reply.GetResult()
		return reply, err
	})
	return result, err
}

// settle goes on until the cluster has recorded that a number is void, and only then acknowledges it.
func (c *Client) settle(seq uint64) {
	defer c.settling.Done()
	op := &storepb.Op{Op: &storepb.Op_Cancel{Cancel: &storepb.Cancel{Seq: seq}}}
	cmd := &storepb.Command{Session: c.session, Op: op}
	cmd.Seq, cmd.Acked = c.numbers.take()
	result, err := c.send(c.ctx, cmd)
	if err != nil {
		c.logger.Error("closed before the outcome of an operation was settled", "seq", seq, "error", err)
		return
	}
	if result.GetCode() != storepb.Code_OK {
		c.logger.Error("the outcome of an operation could not be settled", "seq", seq, "code", result.GetCode())
	}
	c.numbers.done(cmd.Seq)
	c.finish(seq)
}

// Close ends the session. It gives what is unsettled, and its own farewell, until ctx ends.
func (c *Client) Close(ctx context.Context) error {
	settled := make(chan struct{})
	go func() {
		c.settling.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
	op := &storepb.Op{Op: &storepb.Op_CloseSession{CloseSession: &storepb.CloseSession{Id: c.session}}}
	cmd := &storepb.Command{Session: c.session, Op: op}
	cmd.Seq, cmd.Acked = c.numbers.take()
	_, err := c.send(ctx, cmd)
	c.cancel()
	if c.peers != nil {
		c.peers.close()
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}
