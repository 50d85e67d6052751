package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// operatorWait is far beyond what anything here takes on a busy machine.
const operatorWait = 60 * time.Second

// runningServer is a server without a mount, in a process of its own.
type runningServer struct {
	program     string
	environment []string // for commands, which find it then
	data        string
	sockets     string // directory
	api, http   string
	pid         int
}

func startServer(t testing.TB) *runningServer {
	t.Helper()
	s := &runningServer{
		program: clitest.ProgramNamed(t, "lockfs"), data: filepath.Join(t.TempDir(), "data"), api: loopback.Free(t), http: loopback.Free(t),
		sockets: t.TempDir(),
	}
	s.environment = []string{"LOCKFS_SERVERS=" + s.api, cli.SocketDirVariable + "=" + s.sockets, "LOCKFS_INSECURE=true"}
	made := clitest.Execute(t, s.environment, s.program, "server", "init", "--name", "a", "--data", s.data, "--insecure", "--addr", s.api)
	require.Zero(t, made.Code, made.Stderr)
	server := exec.Command(s.program, "server", "--name", "a", "--data", s.data, "--insecure", "--addr", s.api, "--http-addr", s.http)
	server.Env = clitest.Environment(s.environment...)
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	s.pid = server.Process.Pid
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "lockfs: a ready\n", line)
	return s
}

// lock takes a lock whose content has a holder.
func (s *runningServer) lock(t testing.TB, name, holder string) {
	t.Helper()
	client, err := session.Dial(t.Context(), []string{s.api}, session.Config{
		Host: "h", OpTimeout: operatorWait, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(t.Context()) })
	made, err := client.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: uint64(namespace.RootIno), Name: []byte(name), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
	}}})
	require.NoError(t, err)
	written, err := client.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
		Ino: made.GetAttr().GetIno(), IfVersion: made.GetAttr().GetVersion(),
		Content: []byte(`{"task_id":"t","worker":"` + holder + `","acquired_at":"2026-01-02T03:04:05Z"}`),
	}}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, written.GetCode(), written.GetMessage())
}

// TestABundleHasNoSecrets plants recognisable ones wherever a server has some.
func TestABundleHasNoSecrets(t *testing.T) {
	const planted = "PLANTED"
	server := startServer(t)
	server.lock(t, "visible.lock", planted+"-holder")
	identity := filepath.Join(server.data, "identity")
	require.NoError(t, os.Mkdir(identity, 0o700))
	for name, text := range map[string]string{
		"host.key": "-----BEGIN PRIVATE KEY-----\n" + planted + "\n-----END PRIVATE KEY-----\n",
		"seal.key": "-----BEGIN LOCKFS SEAL KEY-----\n" + planted + "\n-----END LOCKFS SEAL KEY-----\n",
		"token":    "lockfs-server-" + planted + "AAAAAAAAAAAAAAAA",
		"host.pem": planted, // in place of a certificate
	} {
		require.NoError(t, os.WriteFile(filepath.Join(identity, name), []byte(text), 0o600))
	}
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	environment := append(server.environment, "LOCKFS_JOIN_TOKEN=lockfs-server-"+planted+"AAAAAAAAAAAAAAAA", "SOME_PASSWORD="+planted)
	require.Eventually(t, func() bool { // the event that the lock was taken comes a little later
		events := clitest.Execute(t, server.environment, server.program, "events", "--json").Stdout
		return strings.Contains(events, planted+"-holder")
	}, operatorWait, 50*time.Millisecond)
	done := clitest.Execute(t, environment, server.program, "debug", "bundle", file, "--cpu", "1s")
	require.Zero(t, done.Code, done.Stderr)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	files := filesOf(t, packed)
	for name, content := range files {
		require.NotContains(t, content, planted, name)
		if zipped, err := gzip.NewReader(strings.NewReader(content)); err == nil {
			profile, err := io.ReadAll(zipped)
			require.NoError(t, err)
			require.NotContains(t, string(profile), planted, name)
		}
	}
	for name, has := range map[string]string{
		"status.json":                     `"leader": "a"`,
		"members.json":                    `"name": "a"`,
		"sessions.json":                   `"host": "h"`,
		"hosts.json":                      `"h"`,
		"rules.json":                      "[]",
		"alarms.json":                     "[]",
		"quotas.json":                     "[]",
		"doctor.json":                     `"check": "servers"`,
		"events.jsonl":                    `"lock_path":"visible.lock"`,
		"version.txt":                     "lockfs ",
		"build.txt":                       "lockfs/cmd/lockfs",
		"kernel.txt":                      "Linux version",
		"mounts.txt":                      "",
		"daemons/server-a/about.json":     `"data": "` + server.data + `"`,
		"daemons/server-a/build.txt":      "lockfs/cmd/lockfs",
		"daemons/server-a/metrics.txt":    "lockfs_raft_is_leader 1",
		"daemons/server-a/goroutines.txt": "lockfs/cluster",
		"daemons/server-a/heap.pb.gz":     "",
		"daemons/server-a/cpu.pb.gz":      "",
		"daemons/server-a/data.txt":       "identity/host.key",
	} {
		content, found := files[name]
		require.True(t, found, "%s is in the bundle; not in it: %s", name, files["missing.txt"])
		require.Contains(t, content, has, name)
	}
}

// filesOf are the files of a bundle by their names, without the folder that they are in.
func filesOf(t testing.TB, packed []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		_, name, inFolder := strings.Cut(header.Name, "/")
		require.True(t, inFolder && strings.HasPrefix(header.Name, "lockfs-debug-"), header.Name)
		files[name] = string(content)
	}
}

// TestADebugSocketIsItsUsersOwn: nobody else can connect, and the socket of a process that was killed is replaced.
func TestADebugSocketIsItsUsersOwn(t *testing.T) {
	server := startServer(t)
	dir := strings.TrimPrefix(server.environment[1], cli.SocketDirVariable+"=")
	info, err := os.Lstat(filepath.Join(dir, "debug-server-a.sock"))
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
	about, err := cli.AskDaemon(filepath.Join(dir, "debug-server-a.sock"))
	require.NoError(t, err)
	require.Equal(t, server.pid, about.PID)
	require.Equal(t, server.data, about.Data)
}

// TestTheDoctorSeesAServer with nothing told: it finds the data directory through the server's socket.
func TestTheDoctorSeesAServer(t *testing.T) {
	server := startServer(t)
	done := clitest.Execute(t, server.environment, server.program, "doctor", "--json")
	var report struct {
		State    string
		Findings []struct{ Check, State, Finding, Advice string }
	}
	require.NoError(t, json.Unmarshal([]byte(done.Stdout), &report), done.Stderr)
	said := map[string]string{}
	for _, f := range report.Findings {
		said[f.Check] += f.State + " " + f.Finding + "\n"
	}
	require.Contains(t, said["servers"], "ok server a ("+server.api+") answers: leader")
	require.Contains(t, said["daemons"], "ok server a runs as process")
	require.Contains(t, said["disk"], server.data)
	require.Contains(t, said["clock"], "of cluster time")
	require.Contains(t, said["memory"], "--max-bytes")
	require.Equal(t, map[string]int{"ok": 0, "warning": 1, "failed": 2}[report.State], done.Code)

	done = clitest.Execute(t, []string{"LOCKFS_SERVERS=127.0.0.1:1", "LOCKFS_INSECURE=true", server.environment[1]}, server.program, "doctor", "--timeout", "1s")
	require.Equal(t, 2, done.Code)
	require.Contains(t, done.Stdout, "no server answers")
}
