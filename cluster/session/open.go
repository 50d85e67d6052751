package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

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

// reopenPause is for a cluster that says no: it will for a while.
const reopenPause = time.Second

// openFirst opens the first session. A host that crashed and booted again soon has to wait until the
// session ends that it had before.
func (c *Client) openFirst(ctx context.Context) (*clientSession, error) {
	for warned := false; ; warned = true {
		session, err := c.open(ctx, newSessionID(), newNumbers(0))
		refused := new(rpc.RefusedError)
		if !errors.As(err, &refused) || refused.Result.GetCode() != storepb.Code_BUSY {
			return session, err
		}
		if !warned {
			c.logger.Warn("waiting", "error", err)
		}
		select {
		case <-time.After(reopenPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// open opens or takes over a session. The error is a *rpc.RefusedError if the cluster says no.
func (c *Client) open(ctx context.Context, id uint64, numbers *numbers) (*clientSession, error) {
	op := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{
		Host: c.host, BootId: c.bootID, Started: int64(c.started), NoLockDelay: c.noDelay, Machine: c.machine, PidNamespace: c.holders.namespace,
	}}}
	result, err := c.send(ctx, &storepb.Command{Session: id, Op: op})
	if err == nil && result.GetCode() != storepb.Code_OK {
		err = &rpc.RefusedError{Result: result}
	}
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	c.journal.adopt(id, numbers.last)
	s := &clientSession{id: id, numbers: numbers}
	c.renew(s)
	return s, nil
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

// readBootID answers this boot's id; hosts that cannot tell have no sessions to take over.
func readBootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
