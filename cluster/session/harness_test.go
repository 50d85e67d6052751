package session_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// testWait is far beyond what anything here takes on a busy machine.
const testWait = 30 * time.Second

func quietLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// server is a node with its address.
type server struct {
	*cluster.Node
	address string
}

// startServers runs a cluster of n nodes until the test ends, once all are ready; the first has bootstrapped it.
func startServers(t testing.TB, n int) []server {
	t.Helper()
	var servers []server
	for i := range n {
		cfg := cluster.Config{
			Name: fmt.Sprintf("n%d", i), DataDir: filepath.Join(t.TempDir(), "data"), Address: loopback.Free(t), Insecure: true,
			Bootstrap: i == 0, Logger: quietLogger(), SessionTTL: 3 * time.Second, Leases: os.Getenv("LOCKFS_TEST_LEASES") != "off",
		}
		if i > 0 {
			cfg.Join = []string{servers[0].address}
		}
		node, err := cluster.Open(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = node.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		require.NoError(t, node.WaitReady(ctx))
		cancel()
		servers = append(servers, server{node, cfg.Address})
	}
	return servers
}

// sessions are those that live.
func (s server) sessions(t testing.TB) []*clusterpb.Session {
	t.Helper()
	reply, err := s.Sessions(t.Context(), new(clusterpb.SessionsRequest))
	require.NoError(t, err)
	require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome())
	return reply.GetSessions()
}

func openClient(t testing.TB, node server, file string) *session.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := node.OpenClient(ctx, session.Config{Host: "h", OpTimeout: testWait, SessionFile: file, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx)
	})
	return client
}

func createOp(name string) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: namespace.RootIno, Name: []byte(name), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
	}}}
}

func create(t testing.TB, client *session.Client, name string) storepb.Code {
	t.Helper()
	result, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp(name))
	require.NoError(t, err)
	return result.GetCode()
}

func lookup(t testing.TB, client *session.Client, name string) storepb.Code {
	t.Helper()
	result, err := client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte(name)},
	}})
	require.NoError(t, err)
	return result.GetCode()
}
