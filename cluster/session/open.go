package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// open opens or takes over a session. The error is a *rpc.RefusedError if the cluster says no.
func (c *Client) open(ctx context.Context, id ids.Session, numbers *numbers) (*clientSession, error) {
	op := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{
		Host: c.host, BootId: c.bootID, Started: int64(c.started), NoLockDelay: c.noDelay, Machine: c.machine, PidNamespace: c.holders.namespace,
		OldestVersion: c.versions.Oldest, NewestVersion: c.versions.Newest,
	}}}
	result, err := c.send(ctx, &storepb.Command{Session: uint64(id), Op: op})
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
func newSessionID() ids.Session {
	var random [8]byte
	for {
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		if id := binary.LittleEndian.Uint64(random[:]); id != 0 {
			return ids.Session(id)
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
