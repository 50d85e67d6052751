package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
)

var _ raft.StreamLayer = (*raftStream)(nil)

// raftStream carries raft's messages over this node's port. Raft itself accepts terms, entries and
// snapshots of any sender. So each connection begins with the sender's cluster id and instance. A server
// of a lost cluster can then neither overwrite one that replaced the cluster, nor get its votes. A node
// without a cluster id accepts nothing.
type raftStream struct {
	net.Listener
	advertised advertised
	security   *rpc.Security
	cluster    func() string
	instances  *instances // nil: no instance is sent
	logger     *slog.Logger

	mu      sync.Mutex
	refused map[string]bool // logged already
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
	if _, err := conn.Write(s.greeting()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, conn.SetWriteDeadline(time.Time{})
}

// greeting has the cluster's id, and then the instances of the data directory's processes, the present
// one last. The length takes one byte, the number of instances two, and an instance eight, big-endian.
func (s *raftStream) greeting() []byte {
	id := s.cluster()
	greeting := append([]byte{byte(len(id))}, id...)
	var starts []ids.Instance
	if s.instances != nil {
		starts = s.instances.dir.Starts
	}
	greeting = binary.BigEndian.AppendUint16(greeting, uint16(len(starts)))
	for _, start := range starts {
		greeting = binary.BigEndian.AppendUint64(greeting, uint64(start))
	}
	return greeting
}

// Accept is part of net.Listener. It does not wait for the greeting; the first Read does.
func (s *raftStream) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &raftStreamConn{Conn: conn, stream: s}, nil
}

// Addr is the address for the other voters.
func (s *raftStream) Addr() net.Addr { return s.advertised }

// raftStreamConn was dialed by another node. It has one reader.
type raftStreamConn struct {
	net.Conn
	stream  *raftStream
	greeted bool
}

// greetTimeout limits the wait for a greeting.
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
	return s.greetProcess(conn)
}

func (s *raftStream) greetProcess(conn net.Conn) error {
	var number [2]byte
	if _, err := io.ReadFull(conn, number[:]); err != nil {
		return err
	}
	starts := make([]ids.Instance, binary.BigEndian.Uint16(number[:]))
	if len(starts) > consensus.MaxStarts {
		return fmt.Errorf("its data directory has had %d processes", len(starts))
	}
	instances := make([]byte, 8*len(starts))
	if _, err := io.ReadFull(conn, instances); err != nil {
		return err
	}
	for n := range starts {
		starts[n] = ids.Instance(binary.BigEndian.Uint64(instances[8*n:]))
	}
	if last := len(starts) - 1; last >= 0 && s.instances != nil {
		s.instances.describe(processOf(starts[last], starts[:last], ""))
	}
	return nil
}

// report logs a refused server, once for each host.
func (s *raftStream) report(from net.Addr, theirs, ours string) {
	host, _, _ := net.SplitHostPort(from.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if ours == "" || s.refused[host] || len(s.refused) >= maxAddressesLogged {
		return
	}
	if s.refused == nil {
		s.refused = make(map[string]bool)
	}
	s.refused[host] = true
	s.logger.Warn("a server of another cluster is refused; if this cluster was recovered or restored from that one, stop it, and never start it "+
		"on its old data", "address", host, "its", theirs, "this", ours)
}

// advertised is the address for other nodes.
type advertised string

// Network is part of net.Addr.
func (advertised) Network() string { return "tcp" }

// String is part of net.Addr.
func (a advertised) String() string { return string(a) }

// maxAddressesLogged keeps strangers from filling the log.
const maxAddressesLogged = 1000
