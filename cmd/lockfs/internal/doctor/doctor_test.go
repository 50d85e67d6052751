package doctor

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/cluster/health"
	"lockfs/cmd/lockfs/internal/cli"

	"lockfs/cmd/lockfs/internal/mountpoints"
	"lockfs/fusefs/mountpoint"
)

// wellHost is a host where all is well; tests change what is not.
func wellHost(t testing.TB) *host {
	root := t.TempDir()
	put(t, filepath.Join(root, "proc/sys/kernel/osrelease"), "6.12.3-amd64\n")
	put(t, filepath.Join(root, "proc/sys/fs/fuse/max_request_timeout"), "0\n")
	put(t, filepath.Join(root, "etc/fuse.conf"), "user_allow_other\n")
	return &host{
		root: root, uid: 1000, data: []string{"/data"}, now: func() time.Time { return someTime },
		openDevice:   func(string) error { return nil },
		lookPath:     func(string) (string, error) { return "/usr/bin/fusermount3", nil },
		clock:        func() (bool, error) { return true, nil },
		cluster:      func(context.Context) (*clusterStatus, error) { return wellCluster(), nil },
		alarms:       func(context.Context) ([]alarm, error) { return nil, nil },
		filesRemoved: func(context.Context) (map[string]int, error) { return nil, nil },
		mounts:       func() ([]string, error) { return []string{"/locks"}, nil },
		mountState:   func(string) (bool, error) { return false, nil },
		configured: func() ([]mountpoints.Point, error) {
			return []mountpoints.Point{{Dir: "/locks", By: "/etc/fstab"}}, nil
		},
		bare:    bareIs(mountpoint.Bare{Mounted: true, Protection: mountpoint.Immutable, Empty: true}),
		daemons: func() ([]daemonSocket, error) { return nil, nil },
		fileSystem: func(string) (unix.Statfs_t, error) {
			return unix.Statfs_t{Type: unix.EXT4_SUPER_MAGIC, Bsize: 4096, Blocks: 10 << 20, Bavail: 9 << 20, Files: 1000, Ffree: 900}, nil
		},
		syncedWrites: func(string, int) ([]time.Duration, error) { return writes(time.Millisecond, 2*time.Millisecond), nil },
		listen:       func(string) error { return nil },
		memory:       func() uint64 { return 16 << 30 },
		openFiles:    func() (uint64, uint64, error) { return 1024, 1 << 20, nil },
	}
}

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// writes are fifty, of which one took longest.
func writes(median, longest time.Duration) []time.Duration {
	took := make([]time.Duration, diskWrites)
	for i := range took {
		took[i] = median
	}
	took[7], took[8] = longest, longest
	return took
}

func wellCluster() *clusterStatus {
	status := new(clusterStatus)
	if err := json.Unmarshal([]byte(`{"health":{"confirmed":true,"voters":3,"answering":3},"leader":"a","cluster_time":"2026-01-02T03:04:05Z","usage":{"bytes":1,"max_bytes":1073741824},"nodes":[
		{"name":"a","address":"h1:1","version":"v1","state":"leader","voter":true},
		{"name":"b","address":"h2:1","version":"v1","state":"follower","voter":true},
		{"name":"c","address":"h3:1","version":"v1","state":"follower","voter":true}]}`), status); err != nil {
		panic(err)
	}
	status.asked, status.came = someTime, someTime.Add(10*time.Millisecond)
	return status
}

func put(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestAWellHost(t *testing.T) {
	r := examine(t.Context(), wellHost(t))
	for _, f := range r.Findings {
		require.Equal(t, OK, f.State, "%+v", f)
	}
	require.Equal(t, OK, r.State)
	require.Regexp(t, `^all is well: \d+ findings are ok$`, r.Summary)
	require.Zero(t, r.exitCode())
}

// TestAHostWithOnlyAMount has no data directory, and needs no memory for a state.
func TestAHostWithOnlyAMount(t *testing.T) {
	h := wellHost(t)
	h.data, h.memory = nil, func() uint64 { return 1 }
	daemon(nil, nil)(h)
	for _, f := range examine(t.Context(), h).Findings {
		require.Equal(t, OK, f.State, "%+v", f)
		require.NotContains(t, []string{"disk", "file-system", "space", "memory"}, f.Check)
	}
}

// TestWithoutServersOnlyTheCauseIsReported: the checks of the clock, the alarms, the lock files and the memory report nothing.
func TestWithoutServersOnlyTheCauseIsReported(t *testing.T) {
	h := wellHost(t)
	h.cluster = func(context.Context) (*clusterStatus, error) { return nil, errors.New("connection refused") }
	var trouble []string
	for _, f := range examine(t.Context(), h).Findings {
		if f.State != OK {
			trouble = append(trouble, f.Check+" "+string(f.State))
		}
	}
	require.Equal(t, []string{"servers unknown"}, trouble)
}

// TestWhatIsWrong: each thing that is wrong on an otherwise well host is one finding of its check, with what to do.
func TestWhatIsWrong(t *testing.T) {
	pathError := func(err error) error { return &os.PathError{Op: "open", Path: "x", Err: err} }
	cluster := func(change func(*clusterStatus)) func(*host) {
		return func(h *host) {
			status := wellCluster()
			change(status)
			h.cluster = func(context.Context) (*clusterStatus, error) { return status, nil }
		}
	}
	space := func(change func(*unix.Statfs_t)) func(*host) {
		return func(h *host) {
			stat, _ := h.fileSystem("")
			change(&stat)
			h.fileSystem = func(string) (unix.Statfs_t, error) { return stat, nil }
		}
	}
	setting := func(path, text string) func(*host) {
		return func(h *host) { put(t, filepath.Join(h.root, path), text) }
	}
	none := func(h *host) {
		h.cluster = func(context.Context) (*clusterStatus, error) { return nil, errors.New("nobody there") }
	}
	for name, c := range map[string]struct {
		check  string
		change func(*host)
		state  State
		says   string
		advice bool
	}{
		"no device":      {"fuse", func(h *host) { h.openDevice = func(string) error { return pathError(fs.ErrNotExist) } }, Failed, "is missing", true},
		"no permission":  {"fuse", func(h *host) { h.openDevice = func(string) error { return pathError(unix.EACCES) } }, Failed, "uid 1000", true},
		"no driver":      {"fuse", func(h *host) { h.openDevice = func(string) error { return pathError(unix.ENODEV) } }, Failed, "no driver", true},
		"other error":    {"fuse", func(h *host) { h.openDevice = func(string) error { return pathError(unix.EIO) } }, Failed, "input/output", true},
		"no fusermount":  {"fusermount", func(h *host) { h.lookPath = func(string) (string, error) { return "", fs.ErrNotExist } }, Failed, "only root", true},
		"not for others": {"allow-other", setting("etc/fuse.conf", "# user_allow_other\n"), OK, "only for themselves", false},
		"old kernel":     {"kernel", setting("proc/sys/kernel/osrelease", "5.2.0"), Failed, "pidfd_open", true},
		"elder kernel":   {"kernel", setting("proc/sys/kernel/osrelease", "6.8.12"), Warning, "a crash of the mount's process ends the mount", true},
		"late kernel":    {"kernel", setting("proc/sys/kernel/osrelease", "6.5.0-14-generic"), Warning, "drop fcntl locks", true},
		"asking kernel":  {"kernel", setting("proc/sys/kernel/osrelease", "6.9.0-13"), OK, "Linux 6.9.0-13", false},
		"odd kernel":     {"kernel", setting("proc/sys/kernel/osrelease", "plan9"), Unknown, "cannot be read", false},
		"short timeout":  {"fuse-timeouts", setting("proc/sys/fs/fuse/max_request_timeout", "10"), Failed, "is 10 s", true},
		"long timeout":   {"fuse-timeouts", setting("proc/sys/fs/fuse/default_request_timeout", "600"), Warning, "EAGAIN", true},
		"odd timeout":    {"fuse-timeouts", setting("proc/sys/fs/fuse/max_request_timeout", "x"), Unknown, "cannot be read", false},
		"dead mount":     {"mounts", func(h *host) { h.mountState = func(string) (bool, error) { return true, nil } }, Failed, "/locks is dead", true},
		"not mounted": {"mount-points", func(h *host) { h.bare = bareIs(mountpoint.Bare{Protection: mountpoint.Immutable}) }, Warning,
			"lockfs is not mounted at /locks, but /etc/fstab configures it", true},
		"bare": {"mount-points", func(h *host) { h.bare = bareIs(mountpoint.Bare{Mounted: true, Empty: true}) }, Warning,
			"/locks: programs can lock in the directory below the mount while lockfs is not mounted", true},
		"bare with files": {"mount-points", func(h *host) { h.bare = bareIs(mountpoint.Bare{Mounted: true}) }, Warning, "which has files in it", true},
		"covered": {"mount-points", func(h *host) {
			h.bare = bareIs(mountpoint.Bare{Mounted: true, Protection: mountpoint.Covered, Empty: true})
		}, Warning,
			"a read-only tmpfs covers the directory below the mount, but only from the first start of lockfs after a boot on", true},
		"covered on a network": {"mount-points", func(h *host) {
			h.bare = bareIs(mountpoint.Bare{Mounted: true, Protection: mountpoint.Covered, Empty: true, Shared: true})
		}, Warning, "but other hosts with this file system can create files there", true},
		"below the mount": {"mount-points", func(h *host) {
			h.bare = func(string) (*mountpoint.Bare, error) { return nil, unix.EPERM }
		}, Unknown, "the directory below /locks cannot be read", true},
		"hanging mount":   {"mounts", func(h *host) { h.mountState = func(string) (bool, error) { return false, errors.New("no answer") } }, Failed, "/locks: no answer", true},
		"no mounts":       {"mounts", func(h *host) { h.mounts = func() ([]string, error) { return nil, nil } }, OK, "is not mounted", false},
		"unlisted mounts": {"mounts", func(h *host) { h.mounts = func() ([]string, error) { return nil, unix.EIO } }, Unknown, "cannot be listed", false},
		"killed daemon":   {"daemons", daemon(nil, unix.ECONNREFUSED), Warning, "was killed", true},
		"other's daemon":  {"daemons", daemon(nil, unix.EACCES), Unknown, "another user", true},
		"silent daemon":   {"daemons", daemon(nil, os.ErrDeadlineExceeded), Warning, "does not answer", true},
		"daemon":          {"daemons", daemon(&cli.Daemon{Kind: "server", Of: "a", PID: 7, Version: "v1"}, nil), OK, "server a runs as process 7", false},
		"unsynchronised":  {"clock", func(h *host) { h.clock = func() (bool, error) { return false, nil } }, Warning, "no service synchronises", true},
		"unknown clock":   {"clock", func(h *host) { h.clock = func() (bool, error) { return false, unix.EPERM } }, Unknown, "does not say", false},
		"clock ahead":     {"clock", cluster(func(s *clusterStatus) { s.Time = s.Time.Add(-2 * time.Second) }), Warning, "2.005s ahead", true},
		"clock behind":    {"clock", cluster(func(s *clusterStatus) { s.Time = s.Time.Add(2 * time.Second) }), Warning, "1.995s behind", true},
		"slow answer":     {"clock", cluster(func(s *clusterStatus) { s.came = s.asked.Add(4 * time.Second) }), OK, "within 4.001s", false},
		"nobody asked":    {"servers", none, Unknown, "nobody there", true},
		"nobody answers": {"servers", func(h *host) {
			none(h)
			h.asked = true
		}, Failed, "nobody there", true},
		"a daemon without servers": {"servers", func(h *host) {
			none(h)
			daemon(&cli.Daemon{Kind: "mount", Of: "/locks"}, nil)(h)
		}, Failed, "nobody there", true},
		"silent server": {"servers", cluster(func(s *clusterStatus) { s.Nodes[1].Error = "refused" }), Warning, "server b (h2:1) is unreachable: refused", true},
		"two versions":  {"servers", cluster(func(s *clusterStatus) { s.Nodes[1].Version = "v2" }), Warning, "v1 (a, c); v2 (b)", true},
		"two clusters":  {"servers", cluster(func(s *clusterStatus) { s.SeveralClusters = "the servers belong to 2 clusters" }), Failed, "2 clusters", true},
		"no leader":     {"servers", cluster(withoutQuorum), Failed, "NO QUORUM: 1 of 3 voters answers", true},
		"even":          {"servers", cluster(func(s *clusterStatus) { s.Nodes[2].Voter = false }), Warning, "2 voters tolerate", true},
		"an alarm": {"alarms", func(h *host) {
			h.alarms = func(context.Context) ([]alarm, error) { return []alarm{{7, "state_differs", "that of b was not"}}, nil }
		}, Failed, "state_differs: that of b was not", true},
		"unknown alarms": {"alarms", func(h *host) { h.alarms = func(context.Context) ([]alarm, error) { return nil, unix.EPERM } }, Unknown, "not permitted", false},
		"removed lock files": {"lock-files", func(h *host) {
			h.filesRemoved = func(context.Context) (map[string]int, error) { return map[string]int{"/jobs/run.lock": 3}, nil }
		}, Warning, "/jobs/run.lock was removed 3 times", true},
		"odd address":   {"ports", func(h *host) { h.listen = func(string) error { return unix.EACCES } }, Unknown, "permission denied", false},
		"taken port":    {"ports", func(h *host) { h.listen = func(string) error { return unix.EADDRINUSE } }, Unknown, "of another user", true},
		"unreadable":    {"disk", func(h *host) { h.syncedWrites = func(string, int) ([]time.Duration, error) { return nil, unix.EACCES } }, Unknown, "cannot be timed", true},
		"slow disk":     {"disk", times(30*time.Millisecond, 40*time.Millisecond), Warning, "30ms in the median, 40ms in the 99th", true},
		"uneven disk":   {"disk", times(time.Millisecond, 200*time.Millisecond), Warning, "200ms in the 99th", true},
		"useless disk":  {"disk", times(time.Millisecond, time.Second), Failed, "1s in the 99th", true},
		"no data":       {"disk", func(h *host) { h.data = nil }, Unknown, "no data directory is known", true},
		"tmpfs":         {"file-system", space(func(s *unix.Statfs_t) { s.Type = unix.TMPFS_MAGIC }), Warning, "tmpfs", true},
		"nfs":           {"file-system", space(func(s *unix.Statfs_t) { s.Type = unix.NFS_SUPER_MAGIC }), Warning, "NFS", true},
		"overlay":       {"file-system", space(func(s *unix.Statfs_t) { s.Type = unix.OVERLAYFS_SUPER_MAGIC }), Warning, "mount a volume", true},
		"no directory":  {"file-system", func(h *host) { h.fileSystem = func(string) (s unix.Statfs_t, err error) { return s, unix.ENOENT } }, Unknown, "no such file", false},
		"little space":  {"space", space(func(s *unix.Statfs_t) { s.Bavail = s.Blocks / 10 }), Warning, "4.0 GiB of 40.0 GiB", true},
		"no space":      {"space", space(func(s *unix.Statfs_t) { s.Bavail = 10 }), Failed, "are free", true},
		"few inodes":    {"space", space(func(s *unix.Statfs_t) { s.Ffree = 100 }), Warning, "100 of 1000 inodes", true},
		"no inodes":     {"space", space(func(s *unix.Statfs_t) { s.Ffree = 1 }), Failed, "1 of 1000 inodes", true},
		"btrfs":         {"space", space(func(s *unix.Statfs_t) { s.Files, s.Ffree = 0, 0 }), OK, "are free", false},
		"little memory": {"memory", func(h *host) { h.memory = func() uint64 { return 2 << 30 } }, Warning, "a server up to 2.1 GiB of memory; this host has 2.0 GiB", true},
		"any memory":    {"memory", func(h *host) { h.memory = func() uint64 { return 0 } }, Unknown, "unknown", false},
		"few files":     {"files", func(h *host) { h.openFiles = func() (uint64, uint64, error) { return 1024, 1024, nil } }, Warning, "1024 files", true},
		"any files":     {"files", func(h *host) { h.openFiles = func() (uint64, uint64, error) { return 0, 0, unix.EPERM } }, Unknown, "unknown", false},
		"odd certificate": {"certificates", func(h *host) {
			h.identities = []string{filepath.Join(h.root, "id")}
			put(t, filepath.Join(h.root, "id", cli.LeafFile), "x")
		}, Failed, "the file has no certificate", true},
		"old certificate":    {"certificates", certificate(t, -time.Hour), Failed, "has expired at 2026-01-02T02:04:05Z", true},
		"dying certificate":  {"certificates", certificate(t, 24*time.Hour), Warning, "expires at 2026-01-03T03:04:05Z", true},
		"certificate":        {"certificates", certificate(t, 20*24*time.Hour), OK, "valid until", false},
		"future certificate": {"certificates", certificate(t, 31*24*time.Hour), Failed, "not valid before", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := wellHost(t)
			c.change(h)
			var said []Finding
			for _, check := range checks {
				if check.name == c.check {
					said = check.look(t.Context(), h)
				}
			}
			matching := 0
			for _, f := range said {
				if f.State == c.state && strings.Contains(f.Finding, c.says) && (f.Advice != "") == c.advice {
					matching++
				}
			}
			require.Positive(t, matching, "%+v", said)
			require.Equal(t, map[State]int{OK: 0, Unknown: 0, Warning: 1, Failed: 2}[c.state], (&report{State: c.state}).exitCode())
		})
	}
}

func daemon(about *cli.Daemon, err error) func(*host) {
	return func(h *host) {
		h.daemons = func() ([]daemonSocket, error) { return []daemonSocket{{"/run/lockfs/mount-x.sock", about, err}}, nil }
	}
}

func times(median, longest time.Duration) func(*host) {
	return func(h *host) {
		h.syncedWrites = func(string, int) ([]time.Duration, error) { return writes(median, longest), nil }
	}
}

// certificate gives a host one of 30 days of which some time is left.
func certificate(t testing.TB, left time.Duration) func(*host) {
	return func(h *host) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		end := someTime.Add(left)
		leaf := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-30 * 24 * time.Hour), NotAfter: end}
		der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
		require.NoError(t, err)
		h.identities = []string{filepath.Join(h.root, "none"), filepath.Join(h.root, "id")}
		put(t, filepath.Join(h.root, "id", cli.LeafFile), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	}
}

func withoutQuorum(s *clusterStatus) {
	s.Leader = ""
	s.Health = health.Of([]health.Voter{{Name: "a"}, {Name: "b", Failure: "connection refused"}, {Name: "c", Failure: "connection refused"}}, context.DeadlineExceeded)
}

// TestWithoutAQuorumOnlyTheCauseIsReported: the clock, the alarms, the lock files and a mount that does not answer are no further findings.
func TestWithoutAQuorumOnlyTheCauseIsReported(t *testing.T) {
	h := wellHost(t)
	status := wellCluster()
	withoutQuorum(status)
	h.cluster = func(context.Context) (*clusterStatus, error) { return status, nil }
	unasked := errors.New("this must not be asked")
	h.alarms = func(context.Context) ([]alarm, error) { return nil, unasked }
	h.filesRemoved = func(context.Context) (map[string]int, error) { return nil, unasked }
	h.mountState = func(string) (bool, error) {
		return false, errors.New("lockfs is mounted there already and does not answer")
	}
	var trouble []string
	for _, f := range examine(t.Context(), h).Findings {
		if f.State != OK {
			trouble = append(trouble, f.Check)
		}
	}
	require.Equal(t, []string{"servers"}, trouble)
}

// TestWhoHasAPort looks at this very process.
func TestWhoHasAPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.ErrorIs(t, tryListen(":"+port), unix.EADDRINUSE)

	h := wellHost(t)
	h.root = "/"
	name, pid, err := h.listenerOn(port)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), pid)
	finding := h.userOf(port)
	require.Equal(t, Warning, finding.State)
	require.Contains(t, finding.Finding, name+", process "+strconv.Itoa(pid))

	// As /proc looks if it is lockfs.
	fake := wellHost(t)
	table, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	put(t, fake.path("proc/net/tcp"), string(table))
	descriptors, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(fake.path("proc/77/fd"), 0o700))
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(descriptor); err == nil {
			require.NoError(t, os.Symlink(target, fake.path("proc/77/fd/"+filepath.Base(descriptor))))
		}
	}
	put(t, fake.path("proc/77/comm"), "lockfs\n")
	require.Equal(t, ok("port %s belongs to lockfs, process 77", port), fake.userOf(port))
}

// TestTheRealHost: what the checks ask the system for is there, as any user.
func TestTheRealHost(t *testing.T) {
	dir := t.TempDir()
	took, err := syncedWrites(dir, 3)
	require.NoError(t, err)
	require.Len(t, took, 3)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is left of the test of the disk")
	_, err = syncedWrites(filepath.Join(dir, "none"), 3)
	require.ErrorIs(t, err, fs.ErrNotExist)
	stat, err := statfs(dir)
	require.NoError(t, err)
	require.Positive(t, stat.Blocks)
	_, err = readClock()
	require.NoError(t, err)
	_, hard, err := readOpenFiles()
	require.NoError(t, err)
	require.Positive(t, hard)
	require.Positive(t, readMemory())
	require.ErrorIs(t, openDevice(filepath.Join(dir, "none")), fs.ErrNotExist)
	require.True(t, isDir(dir))
}

func TestReports(t *testing.T) {
	h := wellHost(t)
	h.clock = func() (bool, error) { return false, nil }
	r := examine(t.Context(), h)
	var text, asJSON bytes.Buffer
	require.NoError(t, r.write(&text, false))
	require.Regexp(t, `^1 warning, \d+ ok\nwarning  clock +no service synchronises the clock\n +-> run an NTP client`, text.String())
	require.NoError(t, r.write(&asJSON, true))
	var read report
	require.NoError(t, json.Unmarshal(asJSON.Bytes(), &read))
	require.Equal(t, *r, read)
	require.Equal(t, Warning, read.State)
	for _, c := range checks {
		require.Contains(t, Command().Long, c.name+" ")
	}
}

// bareIs answers for each mount point.
func bareIs(b mountpoint.Bare) func(string) (*mountpoint.Bare, error) {
	return func(string) (*mountpoint.Bare, error) { return &b, nil }
}
