package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"

	"lockfs/cluster/clusterpb"
)

// vetting returns nil for a connection without a check.
func (s *Security) vetting(conn net.Conn) Vetting {
	secure, is := conn.(*tls.Conn)
	if !is || s == nil || s.Vet == nil {
		return nil
	}
	state := secure.ConnectionState()
	return s.Vet(&state)
}

// refused closes the connection to a server which must not get calls.
func (c *clientConn) refused() error {
	if c.vetting == nil {
		return nil
	}
	if err := c.vetting.Refused(); err != nil {
		return c.fail(err)
	}
	return nil
}

// vet returns an error if the server must not get a call.
func (c *clientConn) vet(ctx context.Context, numbers *atomic.Uint64) error {
	if err := c.refused(); err != nil || c.vetting == nil || ctx.Value(unprovenKey{}) != nil {
		return err
	}
	return c.vetting.Prove(ctx, func(ctx context.Context, request *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
		answer, err := c.ask(ctx, head{number: numbers.Add(1), kind: proveServerMethod}, request)
		if err != nil {
			return nil, err
		}
		reply := new(clusterpb.ProveServerReply)
		if err := answer.read(reply); err != nil {
			return nil, errors.New(err.Error()) // a refusal by an unproven server is not final
		}
		return reply, nil
	})
}
