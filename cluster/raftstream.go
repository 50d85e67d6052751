package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/rpc"
)

var _ raft.StreamLayer = (*raftStream)(nil)

// raftStream carries raft's messages: those to this node come to its port, as everything does. Raft itself takes terms, entries and
// snapshots from whoever sends them, so each connection begins with the id of the cluster that the sender belongs to. A server of a lost
// cluster that is started again can so neither overwrite one that goes on without it, nor get its votes. A node that does not know yet
// to which cluster it belongs takes nothing.
type raftStream struct {
	net.Listener
	advertised advertised
	security   *rpc.Security
	cluster    func() string
	logger     *slog.Logger

	mu      sync.Mutex
	refused map[string]bool // what was logged
}

// Dial is part of raft.StreamLayer.
func (s *raftStream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := s.security.Dial(ctx, string(address), rpc.ProtocolRaft)
	if err != nil {
		return nil, err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(timeout))
	id := s.cluster()
	if _, err := conn.Write(append([]byte{byte(len(id))}, id...)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, conn.SetWriteDeadline(time.Time{})
}

// Accept is part of net.Listener. It does not wait for what a connection begins with; who reads from it does.
func (s *raftStream) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &raftStreamConn{Conn: conn, stream: s}, nil
}

// Addr is where the other voters find this one.
func (s *raftStream) Addr() net.Addr { return s.advertised }

// raftStreamConn is one that another node has dialed. It has one reader.
type raftStreamConn struct {
	net.Conn
	stream  *raftStream
	greeted bool
}

// greetTimeout is for how long a connection may say nothing of what it is for.
const greetTimeout = 5 * time.Second

// Read is part of net.Conn.
func (c *raftStreamConn) Read(b []byte) (int, error) {
	if !c.greeted {
		err := c.SetReadDeadline(time.Now().Add(greetTimeout))
		if err == nil {
			err = c.stream.greet(c.Conn)
		}
		if err == nil {
			err = c.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return 0, err
		}
		c.greeted = true
	}
	return c.Conn.Read(b)
}

func (s *raftStream) greet(conn net.Conn) error {
	length := make([]byte, 1)
	if _, err := io.ReadFull(conn, length); err != nil {
		return err
	}
	theirs := make([]byte, length[0])
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return err
	}
	if ours := s.cluster(); ours == "" || string(theirs) != ours {
		s.report(conn.RemoteAddr(), string(theirs), ours)
		return fmt.Errorf("it is of cluster %q, and this node of %q", theirs, ours)
	}
	return nil
}

// report logs it once for each host.
func (s *raftStream) report(from net.Addr, theirs, ours string) {
	host, _, _ := net.SplitHostPort(from.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if ours == "" || s.refused[host] || len(s.refused) >= mostTurnedAway {
		return
	}
	if s.refused == nil {
		s.refused = make(map[string]bool)
	}
	s.refused[host] = true
	s.logger.Warn("a server of another cluster is refused; if it is one of a cluster that this one goes on for, end it, and never start it "+
		"on its old data", "address", host, "its", theirs, "this", ours)
}

// advertised is the address that others are told.
type advertised string

// Network is part of net.Addr.
func (advertised) Network() string { return "tcp" }

// String is part of net.Addr.
func (a advertised) String() string { return string(a) }

// mostTurnedAway is of how many addresses it is said: whoever reaches the port could fill the log.
const mostTurnedAway = 1000
