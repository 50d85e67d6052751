package rpc

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/test/fuzzing"
)

// fuzzPort has what somebody says to a port, of whom nothing is known, come to an end, and leave room for
// others.
func fuzzPort(f *testing.F, security *Security, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	listener := &manyListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	h := newHalfOpen(64, 64, graceTime)
	p := servePort(f, listener, security, h, portTimes{handshake: time.Second, preface: time.Second})
	fuzzing.Run(f, func(t *testing.T, said []byte) {
		conn := listener.connect(netip.MustParseAddr("10.0.0.1"))
		require.NoError(t, conn.SetDeadline(time.Now().Add(testWait)))
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_, _ = conn.Write(said)
		require.NoError(t, conn.Close())
		require.Eventually(t, func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.all.Len() == 0 && len(h.addresses) == 0
		}, testWait, 10*time.Microsecond)
		require.Zero(t, p.crowded.Load())
		if security != nil {
			p.server.quota.mu.Lock()
			defer p.server.quota.mu.Unlock()
			require.Zero(t, p.server.quota.connections.Usage(0).Total, "nobody got through")
		}
	})
}

func FuzzPlainBeginning(f *testing.F) {
	fuzzPort(f, nil, "", Preface, RaftPreface, Preface[:3], "\x16\x03\x01\x00\x05hello", "GET / HTTP/1.1\r\n\r\n",
		Preface+string(encodeBare(head{number: 1, kind: whoAmI})))
}

func FuzzTLSBeginning(f *testing.F) {
	of := newTestAuthority(f)
	fuzzPort(f, of.security(f, RoleServer, "a"), "", Preface, "\x16\x03\x01\x00\x05hello", "\x16\x03\x01\xff\xff", string(alert),
		"\x16\x03\x01\x00\x30\x01\x00\x00\x2c\x03\x03")
}

// oneEnroller takes anybody.
type oneEnroller struct{}

func (oneEnroller) Enroll(context.Context, *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	return new(clusterpb.EnrollReply), nil
}

func (oneEnroller) ProveServer(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return new(clusterpb.ProveServerReply), nil
}

// FuzzJoinFrames says something to a join server, which is to do nothing but to enroll, and to have all
// of its room again.
func FuzzJoinFrames(f *testing.F) {
	enroll, err := encode(head{number: 1, kind: enrollMethod}, &clusterpb.EnrollRequest{Host: "a"})
	require.NoError(f, err)
	large := binary.BigEndian.AppendUint32(nil, uint32(joinLimits.request+headSize+1))
	for _, seed := range []string{
		"", Preface, Preface + string(enroll), Preface + string(enroll) + string(enroll), Preface + string(enroll[:7]),
		Preface + string(large) + string(enroll[lengthSize:]), Preface + string(encodeBare(head{number: 2, kind: ping})),
		Preface + string(encodeBare(head{number: 2, kind: statusMethod})),
	} {
		f.Add([]byte(seed))
	}
	s := NewJoinServer(oneEnroller{}, func() {}, func(Caller) {})
	defer s.Close()
	fuzzing.Run(f, func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		require.NoError(t, ours.SetDeadline(time.Now().Add(testWait)))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.serve(&peekedConn{Conn: theirs, caller: Caller{Role: RoleJoiner}})
		}()
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		_, _ = ours.Write(said)
		require.NoError(t, ours.Close())
		<-ended
		require.Zero(t, s.quota.connections.Usage(0).Total)
		require.Zero(t, s.quota.all.used)
		require.Zero(t, s.quota.coming.used)
	})
}
