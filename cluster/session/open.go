package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// open opens or takes over a session. The error is a *rpc.RefusedError if the cluster refuses.
func (c *Client) open(ctx context.Context, id ids.Session, numbers *sequence) (*clientSession, error) {
	if err := c.propose(ctx, id, false); err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	c.journal.adopt(id, numbers.last)
	s := &clientSession{id: id, numbers: numbers}
	c.renew(c.alive, s)
	return s, nil
}

// propose opens a session, or takes it over. With goesOn it only records this program's versions. The error
// is a *rpc.RefusedError if the cluster refuses.
func (c *Client) propose(ctx context.Context, id ids.Session, goesOn bool) error {
	op := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{
		Host: c.host, BootId: c.bootID, Started: int64(c.started), NoLockDelay: c.noDelay, Machine: c.machine, PidNamespace: c.holders.namespace,
		OldestVersion: c.versions.Oldest, NewestVersion: c.versions.Newest, GoesOn: goesOn,
	}}}
	result, err := c.send(ctx, &storepb.Command{Session: uint64(id), Op: op})
	if err == nil && result.GetCode() != storepb.Code_OK {
		err = &rpc.RefusedError{Result: result}
	}
	return err
}

// tellVersions records the versions of a program with an inherited session: a version upgrade waits for it.
func (c *Client) tellVersions(id ids.Session) {
	for {
		err := c.propose(c.ctx, id, true)
		refused := new(rpc.RefusedError)
		switch {
		case err == nil:
			return
		case errors.As(err, &refused) && refused.Code() == storepb.Code_SESSION_UNKNOWN:
			return // the next session has them
		case errors.As(err, &refused):
			c.logger.Error("the cluster does not know this program's versions", "session", id, "error", err)
			return
		case pause.For(c.ctx, reopenPause) != nil:
			return
		}
	}
}

func newSessionID() ids.Session {
	var random [8]byte
	for {
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		if id := binary.LittleEndian.Uint64(random[:]); id != 0 {
			return ids.Session(id)
		}
	}
}

// readBootID returns the boot id; empty: unknown, and sessions cannot be taken over.
func readBootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
