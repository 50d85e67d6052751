package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/backup"
	"lockfs/cluster/certrenew"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// logText is a log that can be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// TestOldVotersDoNotReachARecoveredCluster has a majority of a cluster go on, in a later term, beside the
// one that was recovered from the third: it sends that one entries, and is not heard.
func TestOldVotersDoNotReachARecoveredCluster(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, int) []*Node{
		"insecure": startNodes, "secure": func(t testing.TB, n int) []*Node { return startSecureNodes(t, n) },
	} {
		t.Run(name, func(t *testing.T) {
			nodes := start(t, 3)
			require.Equal(t, storepb.Code_OK, create(t, openNodeClient(t, nodes[0]), "before"))
			for _, node := range nodes {
				require.NoError(t, node.Close())
			}
			r, err := consensus.OpenRecovery(nodes[0].cfg.DataDir, quietLogger())
			require.NoError(t, err)
			was := r.State.Cluster()
			_, err = r.Do(time.Now(), false)
			require.NoError(t, err)
			require.NoError(t, r.Close())

			var old []*Node
			for _, node := range nodes[1:] {
				cfg := node.cfg
				cfg.Metrics = nil
				opened, err := Open(cfg)
				require.NoError(t, err)
				t.Cleanup(func() { _ = opened.Close() })
				old = append(old, opened)
			}
			leads := func() *Node {
				for _, node := range old {
					if node.leadership.term() != 0 {
						return node
					}
				}
				return nil
			}
			for range 5 { // terms beyond that of the recovered one
				require.Eventually(t, func() bool { return leads() != nil }, testWait, 10*time.Millisecond)
				if leader := leads(); leader != nil {
					_ = leader.raft.LeadershipTransfer().Error()
				}
			}
			require.Eventually(t, func() bool { return leads() != nil }, testWait, 10*time.Millisecond)

			log := new(logText)
			cfg := nodes[0].cfg
			cfg.Metrics, cfg.Logger = nil, slog.New(slog.NewTextHandler(log, nil))
			recovered := startNode(t, cfg)
			require.NotEqual(t, was, recovered.dir.ClusterID())
			says := "a server of another cluster is refused"
			if name == "secure" {
				says = "revoked" // that comes before it
			}
			require.Eventually(t, func() bool { return log.has(says) }, testWait, 10*time.Millisecond)
			client := openNodeClient(t, recovered)
			require.Equal(t, storepb.Code_EXISTS, create(t, client, "before"))
			require.Equal(t, storepb.Code_OK, create(t, client, "after"))
			require.NotZero(t, recovered.leadership.term())
			require.Len(t, recovered.raft.VoterIDs(), 1)

			stranger := &storepb.Member{Id: "x-1", Name: "x", Address: loopback.Free(t)}
			reply := ask(t, recovered, rpc.Node.Join, &clusterpb.JoinRequest{Member: stranger, Cluster: was})
			require.Equal(t, storepb.Code_NOT_PERMITTED, reply.GetResult().GetCode())
			require.Contains(t, reply.GetResult().GetMessage(), "empty data directory")
		})
	}
}

// TestASecureClusterIsRestored with its authority, with another one, and without any.
func TestASecureClusterIsRestored(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2)
	require.Equal(t, storepb.Code_OK, create(t, openNodeClient(t, nodes[0]), "before"))
	mount, _ := join(t, nodes[0], "m")
	unused := newToken(t, nodes[0], new(storepb.JoinToken))
	var file bytes.Buffer
	write, err := nodes[0].backupSchedule.begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, write(&file))
	seal, err := identity.LoadSealKey(filepath.Join(nodes[1].cfg.DataDir, consensus.SealKeyFile))
	require.NoError(t, err)
	lostServer, lostAuthority := nodes[1].security.credentials, mount.Signer()
	for _, node := range nodes {
		require.NoError(t, node.Close())
	}
	restore := func(name string, seal *identity.SealKey, insecure bool) (Config, error) {
		header, state, err := backup.Read(bytes.NewReader(file.Bytes()))
		require.NoError(t, err)
		require.Equal(t, nodes[0].dir.ClusterID(), header.Cluster)
		cfg := secureConfig(t, name)
		cfg.Insecure = insecure
		return cfg, (&Restoration{
			Dir: cfg.DataDir, Claim: consensus.Claim{Name: name, Address: cfg.Address}, State: state, Term: ids.Term(header.Term),
			Insecure: insecure, Seal: seal,
		}).Do(time.Now())
	}

	for _, name := range []string{"n0", "elsewhere"} { // one of the old names, or another
		cfg, err := restore(name, &seal, false)
		require.NoError(t, err)
		node := startNode(t, cfg)
		require.NotEqual(t, nodes[0].dir.ClusterID(), node.dir.ClusterID())
		require.Equal(t, storepb.Code_EXISTS, create(t, openNodeClient(t, node), "before"))
		require.NoError(t, mount.SetServers([]string{cfg.Address}))
		require.Equal(t, storepb.Code_OK, create(t, mountAt(t, mount).Client, "of the mount"))
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		_, err = callerAs(t, node, lostServer).Status(ctx, new(clusterpb.StatusRequest))
		require.ErrorContains(t, err, "tls")
		unused.Addresses = []string{cfg.Address}
		_, err = certrenew.Join(ctx, unused, "late", t.TempDir(), nil)
		require.ErrorContains(t, err, "the join token is not known")
		cancel()
		second := secureConfig(t, "second")
		enrollNode(t, node, second)
		require.Len(t, startNode(t, second).raft.VoterIDs(), 2)
	}

	cfg, err := restore("n0", nil, false)
	require.NoError(t, err)
	node := startNode(t, cfg)
	require.NotEqual(t, lostAuthority, node.security.credentials.Signer())
	require.Equal(t, storepb.Code_EXISTS, create(t, openNodeClient(t, node), "before"))
	require.NoError(t, mount.SetServers([]string{cfg.Address}))
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	_, err = callerAs(t, node, mount).Status(ctx, new(clusterpb.StatusRequest))
	require.ErrorContains(t, err, "another cluster")
	anew, _ := join(t, node, "m")
	require.Equal(t, storepb.Code_OK, create(t, mountAt(t, anew).Client, "of the mount"))

	cfg, err = restore("n0", nil, true)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_EXISTS, create(t, openNodeClient(t, startNode(t, cfg)), "before"))

	other := identity.NewSealKey()
	cfg, err = restore("n0", &other, false)
	require.ErrorIs(t, err, identity.ErrWrongSealKey)
	left, err := os.ReadDir(cfg.DataDir)
	require.NoError(t, err)
	require.Empty(t, left, "it can be tried again")
	_, err = restore("n0", &seal, true)
	require.ErrorContains(t, err, "leave the seal key out")
}
