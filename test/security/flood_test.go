package security

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

const (
	halfOpen   = 10_000          // connections
	floodHosts = 8               // that they come from
	patience   = 5 * time.Second // of a server with each of them
)

// acceptOnly keeps as many connections as a server has room for that does not know yet what they are for.
const acceptOnly = `
import collections, socket, sys
server = socket.create_server((sys.argv[1], 7420), backlog=4096)
print("ready", flush=True)
kept = collections.deque(maxlen=2048)
while True:
    kept.append(server.accept()[0])
`

// BenchmarkFlood measures the cycle of a lock on a server's mount while nobody else is there, while 10,000 connections to that
// server never come to the end of their handshakes, and while a host that is let in asks for what it does not read:
//
//	go test ./test/security -run '^$' -bench Flood -benchtime 5x
//
// All connections are made again as soon as the server would have ended them anyway. "elsewhere" has as many go to a process that only
// accepts them: what the machine does for them alone. Each figure is the median of the rounds, which take turns.
func BenchmarkFlood(b *testing.B) {
	c := testcluster.StartSecureCluster(b, 3)
	m := c.AddGuest(b, "m")
	m.Start(b)
	leader := c.Leader()
	other := c.Net.Host("elsewhere")
	acceptor := other.Start("python3", "-c", acceptOnly, other.Addr())
	require.NoError(b, acceptor.WaitOutput("ready\n"))
	cases := []struct {
		name  string
		begin func(context.Context)
	}{
		{"quiet", func(context.Context) {}},
		{"elsewhere", func(ctx context.Context) { flood(ctx, b, c.Net, other.Addr()+":7420") }},
		{"flooded", func(ctx context.Context) { flood(ctx, b, c.Net, leader.Addr()) }},
		{"slow-reader", func(ctx context.Context) { readSlowly(ctx, b, asIn(b, m.Host, c.IdentityDir("m")), leader.Addr()) }},
	}
	took := make([][]float64, len(cases))
	for range b.N {
		for i, of := range cases {
			ctx, end := context.WithCancel(context.Background())
			of.begin(ctx)
			took[i] = append(took[i], cycle(b, c, leader))
			end()
		}
	}
	for i, of := range cases {
		b.ReportMetric(stats.Quantile(took[i], 0.5), "us/"+of.name)
	}
	b.ReportMetric(0, "ns/op")
}

// cycle is the median of a cycle in microseconds.
func cycle(b *testing.B, c *testcluster.Cluster, n *testcluster.Node) float64 {
	b.Helper()
	out := n.Host.MustRun(b, c.Program, "bench", "--json", "--only", "cycle", "--duration", "2s", c.Mount)
	var report stats.Report
	require.NoError(b, json.Unmarshal([]byte(out), &report), out)
	require.Empty(b, report.Results[0].Error)
	return report.Results[0].Median
}

// flood makes connections that say nothing, or the beginning of something, and waits until all have been made once.
func flood(ctx context.Context, b *testing.B, net *hosts.Net, address string) {
	b.Helper()
	var made sync.WaitGroup
	var failed atomic.Int32
	for i := range floodHosts {
		h := net.Host("s" + string(rune('0'+i)))
		for j := range halfOpen / floodHosts {
			made.Add(1)
			go func() {
				first := sync.OnceFunc(made.Done)
				for ctx.Err() == nil {
					again := time.After(patience)
					conn, err := h.Dial(address)
					if err != nil {
						failed.Add(1)
					}
					first()
					if err == nil {
						hold(ctx, conn, j%2 == 0)
					}
					select {
					case <-again:
					case <-ctx.Done():
					}
				}
			}()
		}
	}
	made.Wait()
	require.Less(b, failed.Load(), int32(halfOpen/10), "connections that were not even made")
}

// hold keeps a connection until the other side ends it.
func hold(ctx context.Context, conn net.Conn, begun bool) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if begun {
		_, _ = conn.Write([]byte("\x16\x03\x01\x02\x00\x01\x00")) // of a ClientHello
	}
	_, _ = io.Copy(io.Discard, conn)
}

// readSlowly asks for the status again and again, and reads nothing of it.
func readSlowly(ctx context.Context, b *testing.B, v visitor, address string) {
	b.Helper()
	conn, err := v.connect(address, protocolRPC)
	require.NoError(b, err)
	_ = conn.SetDeadline(time.Time{})
	_, err = conn.Write([]byte(rpcPreface))
	require.NoError(b, err)
	go func() {
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		call := frame(methodStatus, nil)
		for {
			if _, err := conn.Write(call); err != nil {
				return
			}
		}
	}()
}
