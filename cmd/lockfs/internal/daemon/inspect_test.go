package daemon

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"lockfs/cluster"
	"lockfs/cluster/consensus"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestInspectShowsEntriesOfARunningServer makes files through a node, and looks at its data directory while it runs and after.
func TestInspectShowsEntriesOfARunningServer(t *testing.T) {
	program, dir := clitest.ProgramNamed(t, "lockfs"), filepath.Join(t.TempDir(), "data")
	node, err := cluster.Open(cluster.Config{Name: "a", DataDir: dir, Bootstrap: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	require.NoError(t, node.WaitReady(t.Context()))
	client, err := node.OpenClient(t.Context(), session.Config{Host: "here", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	result, err := client.Mutate(t.Context(), &storepb.Caller{Host: "here", Uid: 7, Gid: 8, Pid: 9}, &storepb.Op{Op: &storepb.Op_Create{
		Create: &storepb.Create{
			Parent: namespace.RootIno, Name: []byte("my lock"), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
			Content: []byte("pid=4711\n\xff"),
		},
	}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode(), result.GetMessage())
	inspect := func(args ...string) string {
		done := clitest.Execute(t, []string{"LOCKFS_DATA=" + dir}, program, append([]string{"server", "inspect"}, args...)...)
		require.Equal(t, 0, done.Code, done.Stderr)
		return done.Stdout
	}
	look := func() (summary inspected, entries []inspectedEntry) {
		require.NoError(t, json.Unmarshal([]byte(inspect("--json")), &summary))
		require.Equal(t, "a", summary.Node)
		require.Equal(t, uint64(1), summary.First)
		for index := summary.First; index <= summary.Last; index++ {
			var entry inspectedEntry
			require.NoError(t, json.Unmarshal([]byte(inspect("--json", strconv.FormatUint(index, 10))), &entry))
			require.Equal(t, index, entry.Index)
			require.Empty(t, entry.Error)
			entries = append(entries, entry)
		}
		require.Equal(t, summary.LastTerm, entries[len(entries)-1].Term)
		return summary, entries
	}
	_, entries := look()
	require.Equal(t, "configuration", entries[0].Type)
	require.Len(t, entries[0].Servers, 1)
	var made inspectedEntry
	for _, entry := range entries {
		if entry.Command != nil && entry.Command.Operation == "create" {
			made = entry
		}
	}
	require.NotZero(t, made.Command.Session)
	require.Equal(t, uint64(1), made.Command.Seq)
	require.Equal(t, map[string]any{"host": "here", "uid": 7.0, "gid": 8.0, "pid": 9.0}, made.Command.Caller)
	require.Equal(t, map[string]any{
		"parent": 1.0, "name": "my lock", "mode": float64(syscall.S_IFREG | 0o644), "exclusive": true, "content_base64": "cGlkPTQ3MTEK/w==", "says": "SAYS_LOCK",
	}, made.Command.Fields)

	shown := inspect(strconv.FormatUint(made.Index, 10))
	for _, line := range []string{
		"entry " + strconv.FormatUint(made.Index, 10) + " of term ", ": command", "caller     gid 8, host here, pid 9, uid 7",
		"operation  create", `name: "my lock"`,
	} {
		require.Contains(t, shown, line)
	}
	require.Contains(t, inspect(), "node      a\nlog       entries 1 to ")

	require.NoError(t, client.Close(t.Context()))
	require.NoError(t, node.Close())
	summary, entries := look()
	require.Equal(t, "close_session", entries[len(entries)-1].Command.Operation)
	for args, says := range map[string]string{
		strconv.FormatUint(summary.Last+1, 10): "there is no entry " + strconv.FormatUint(summary.Last+1, 10) + " in the log: it has those from 1 to ",
		"0":                                    "there is no entry 0",
		"x":                                    "x is not the index",
		"1 2":                                  "usage: lockfs server inspect",
		"--data " + t.TempDir():                "is no data directory of a lockfs server",
		"--data= ":                             "with --data",
	} {
		done := clitest.Execute(t, []string{"LOCKFS_DATA=" + dir}, program, append([]string{"server", "inspect"}, strings.Fields(args)...)...)
		require.Equal(t, 1, done.Code, args)
		require.Contains(t, done.Stderr, says, args)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	require.NoError(t, err)
	damaged, err := os.ReadFile(segments[0])
	require.NoError(t, err)
	damaged[40] ^= 1
	require.NoError(t, os.WriteFile(segments[0], damaged, 0o600))
	require.Contains(t, inspect(), "log       empty; "+segments[0]+" from byte 0 on is an incomplete batch")
}

// TestInspectNamesWhatItDoesNotKnow shows a command of a newer version.
func TestInspectNamesWhatItDoesNotKnow(t *testing.T) {
	cmd := &storepb.Command{Session: 3, Seq: 4, Op: new(storepb.Op), Caller: &storepb.Caller{Host: "here"}}
	later := protowire.AppendVarint(protowire.AppendTag(nil, 400, protowire.VarintType), 1)
	cmd.GetOp().ProtoReflect().SetUnknown(later)
	cmd.GetCaller().ProtoReflect().SetUnknown(later)
	entry := &consensus.Entry{Index: 5, Term: 6, Type: "command", Command: cmd}
	described := describeEntry(entry)
	require.Empty(t, described.Command.Operation)
	require.ElementsMatch(t, []string{"op.400", "caller.400"}, described.Command.Unknown)
	shown := new(strings.Builder)
	require.NoError(t, printEntry(shown, entry))
	require.Contains(t, shown.String(), "operation  unknown to this program")
	require.Contains(t, shown.String(), "op.400")
}
