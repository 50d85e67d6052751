package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/backup"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func adminOf(t testing.TB, nodes ...*Node) *Admin {
	t.Helper()
	var servers []string
	for _, node := range nodes {
		servers = append(servers, node.cfg.Address)
	}
	admin, err := NewAdmin(servers, nil)
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	return admin
}

func stateHash(node *Node) (index uint64, hash string) {
	state := node.fsm.State()
	return uint64(state.Index()), state.Hash()
}

// TestABackupHasAllThatWasAcknowledged takes one from each node, while others write, right after a
// creation.
func TestABackupHasAllThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	client, busy := openTestClient(t, nodes[0], ""), openTestClient(t, nodes[1], "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = busy.Mutate(ctx, &storepb.Caller{}, createOp(fmt.Sprint("busy", i)))
		}
	}()
	for round := range 6 {
		require.Equal(t, storepb.Code_OK, create(t, client, fmt.Sprint("lock", round)))
		node := nodes[round%3]
		var out bytes.Buffer
		told := int64(0)
		require.NoError(t, adminOf(t, node).Backup(t.Context(), testWait, &out, func(done, all int64) {
			require.EqualValues(t, out.Len(), done)
			told = all
		}))
		require.EqualValues(t, out.Len(), told)
		header, state, err := backup.Read(&out)
		require.NoError(t, err)
		require.Equal(t, node.cfg.Name, header.Node)
		found := state.Query(&storepb.Query{Query: &storepb.Query_Lookup{
			Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: fmt.Append(nil, "lock", round)},
		}})
		require.Equal(t, storepb.Code_OK, found.GetCode(), "round %d", round)
	}
	cancel()
	<-ended
}

// TestABackupIsRestoredElsewhere: the state is that of the cluster at that index, and goes on with other
// numbers.
func TestABackupIsRestoredElsewhere(t *testing.T) {
	t.Parallel()
	node := startNode(t, testConfig(t, "a"))
	client := openTestClient(t, node, "")
	for i := range 20 {
		require.Equal(t, storepb.Code_OK, create(t, client, fmt.Sprint(i)))
	}
	index, hash := stateHash(node)
	var out bytes.Buffer
	require.NoError(t, adminOf(t, node).Backup(t.Context(), testWait, &out, nil))
	header, state, err := backup.Read(&out)
	require.NoError(t, err)
	require.Equal(t, index, header.Index)
	require.Equal(t, hash, state.Snapshot().Hash())
	require.Equal(t, storepb.Code_OK, create(t, client, "lost"))
	lost, _ := stateHash(node)

	cfg := testConfig(t, "other")
	cfg.Bootstrap = false
	require.NoError(t, state.Rebase(time.Now(), namespace.RebaseOptions{Cluster: "another"}))
	require.NoError(t, consensus.Create(cfg.DataDir, consensus.Claim{Name: cfg.Name, Address: cfg.Address}, state, 3, nil, quietLogger()))
	other := startNode(t, cfg)
	second := testConfig(t, "second", other.cfg.Address)
	joined := openTestClient(t, startNode(t, second), "")
	require.Equal(t, storepb.Code_EXISTS, create(t, joined, "7"))
	require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, joined, "lost"))
	require.Equal(t, storepb.Code_OK, create(t, joined, "lost"))
	now, _ := stateHash(other)
	require.Greater(t, now, lost+1<<50, "the microseconds since 1970")
	members, err := adminOf(t, other).Members(t.Context())
	require.NoError(t, err)
	require.Len(t, members, 2, "the old ones are forgotten")
}

// TestBackupsAreBounded: as many as there may be, until somebody has all of his, or does not come for it
// any more.
func TestBackupsAreBounded(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789abcdef"), backupPiece/8)
	failure := errors.New("no")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var refuse error
	b := newBackups(ctx, func(context.Context) (func(io.Writer) error, error) {
		return func(w io.Writer) error { _, err := w.Write(content); return err }, refuse
	})
	b.idle = time.Second
	piece := func(id, number uint64) *clusterpb.BackupReply {
		return b.piece(t.Context(), &clusterpb.BackupRequest{Id: id, Piece: number})
	}
	refuse = failure
	require.Equal(t, failure.Error(), piece(0, 0).GetRefused())
	refuse = nil
	all := func() {
		id := piece(0, 0).GetId()
		require.NotZero(t, id)
		var got []byte
		for number := uint64(0); ; number++ {
			reply := piece(id, number)
			require.Empty(t, reply.GetRefused())
			require.Equal(t, reply, piece(id, number), "once more")
			got = append(got, reply.GetData()...)
			require.NotEmpty(t, piece(id, number+2).GetRefused())
			if reply.GetLast() {
				require.NotEmpty(t, piece(id, number+1).GetRefused())
				break
			}
		}
		require.Equal(t, content, got)
	}
	all()
	awaitPlaces := func() {
		require.Eventually(t, func() bool { return len(b.places) == 0 }, testWait, time.Millisecond)
	}
	awaitPlaces()
	var ids []uint64
	for range maxBackups {
		ids = append(ids, piece(0, 0).GetId())
	}
	require.Contains(t, piece(0, 0).GetRefused(), "try again later")
	awaitPlaces()
	for _, id := range ids {
		require.Contains(t, piece(id, 0).GetRefused(), "this backup was dropped")
	}
	all()
	b.idle = testWait
	id := piece(0, 0).GetId()
	require.Len(t, piece(id, 0).GetData(), backupPiece)
	cancel() // the node is closed
	awaitPlaces()
}

// TestANodeMakesBackupsByItself and keeps the last ones. That it cannot is told where operators look.
func TestANodeMakesBackupsByItself(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "a")
	parent := t.TempDir()
	cfg.BackupDir, cfg.BackupEvery, cfg.BackupKeep = filepath.Join(parent, "sub"), time.Second, 2
	require.NoError(t, os.WriteFile(cfg.BackupDir, nil, 0o600)) // in its way
	node := startNode(t, cfg)
	get := func(path string) string {
		answer := httptest.NewRecorder()
		node.Handler().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		require.Equal(t, 200, answer.Code)
		return answer.Body.String()
	}
	require.Eventually(t, func() bool { return bytes.Contains([]byte(get("/healthz")), []byte("the last backup failed: ")) }, testWait, 10*time.Millisecond)
	require.Contains(t, get("/metrics"), `lockfs_backups_total{result="failed"}`)
	require.NoError(t, os.Remove(cfg.BackupDir))
	series := func() []string {
		found, err := filepath.Glob(filepath.Join(cfg.BackupDir, "lockfs-a-*.backup"))
		require.NoError(t, err)
		return found
	}
	var first []string
	require.Eventually(t, func() bool { first = series(); return len(first) > 0 }, testWait, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		now := series()
		return len(now) == 2 && now[0] != first[0] && now[1] != first[0]
	}, testWait, 10*time.Millisecond, "the first one is removed")
	require.Eventually(t, func() bool { return !bytes.Contains([]byte(get("/healthz")), []byte("backup")) }, testWait, 10*time.Millisecond)
	require.Contains(t, get("/metrics"), `lockfs_backups_total{result="ok"}`)
	require.NoError(t, node.Close())
	for _, path := range series() {
		file, err := os.Open(path)
		require.NoError(t, err)
		_, _, err = backup.Read(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
}
