package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// newBareHost has its mount point on a file system of its own, so that only lockfs keeps programs from creating files there.
func newBareHost(t testing.TB, net *hosts.Net, name string) *upHost {
	t.Helper()
	h := newUpHost(t, net, name)
	h.mount = "/mnt/locks"
	return h
}

// requireBare checks that not even root creates anything in the mount point, where lockfs is not mounted.
func (h *upHost) requireBare(t testing.TB, why string) {
	t.Helper()
	require.Zero(t, testcluster.CountMounts(t, h.Host, h.mount))
	_, err := h.Run("sh", "-c", "set -C; echo held > "+filepath.Join(h.mount, "x.lock"))
	require.ErrorContains(t, err, why)
	_, err = h.Run("mkdir", filepath.Join(h.mount, "dir"))
	require.ErrorContains(t, err, why)
}

// TestNothingLocksBelowTheMount has three workers lock while the daemon of the leader is killed with its guard, and while mounts are
// removed by hand. No worker gets a lock in a bare directory.
func TestNothingLocksBelowTheMount(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	var all []*upHost
	var on []*hosts.Host
	for _, name := range []string{"a", "b", "c"} {
		h := newBareHost(t, net, name)
		if len(all) == 0 {
			h.mustLockfs(t, "up", "--bootstrap")
		} else {
			h.mustLockfs(t, "up", strings.TrimSpace(all[0].mustLockfs(t, "token", "create", "--role", "server")))
		}
		all, on = append(all, h), append(on, h.Host)
	}
	t.Cleanup(func() {
		for _, h := range all {
			if t.Failed() {
				t.Log(h.Name(), h.MustRun(t, "tail", "-n", "30", "/var/log/lockfs.log"))
			}
		}
	})
	w := testcluster.NewWitness(t, filepath.Join(net.Dir(), "witness"))
	job := testcluster.StartJob(t, testcluster.Client{Name: "bare", Command: []string{"sh", "bare.sh"}}, all[0].mount, w, 5, on...)
	for i := range testcluster.Rounds(3, 12) {
		rounds := w.Rounds(t, "")
		hosts.Eventually(t, "that the workers get on", func() (string, bool) {
			now := w.Rounds(t, "")
			return fmt.Sprint(now), now > rounds+3
		})
		leader := leaderOf(t, all[i%3])
		at := 0
		for all[at].Name() != leader {
			at++
		}
		h := all[at]
		h.killAll(t)
		missing := h.Start("sh", "-c", `echo watches; while :; do ls -d "$1/.lockfs" 2>&1 | grep -v -e "$1/.lockfs$" -e "not connected"; done`, "sh", h.mount)
		require.NoError(t, missing.WaitOutput("watches"))
		require.Contains(t, h.mustLockfs(t, "up"), h.mount+" works")
		missing.Kill()
		require.Equal(t, "watches\n", missing.Stdout(), "the directory below the mount never showed")
		require.Equal(t, 1, testcluster.CountMounts(t, h.Host, h.mount))

		at = (at + 1) % 3
		h = all[at]
		h.MustRun(t, "umount", "--lazy", h.mount)
		h.requireBare(t, "Operation not permitted") // and the worker tries too, unless it has the lock
		require.Contains(t, h.mustLockfs(t, "up"), h.mount+" works")
	}
	w.Stop(t)
	job.Wait(t)
	require.Empty(t, w.Verdict(t))
}

// TestUpBeforeTheDaemonKnowsOfTheUnmount freezes the daemons of a server and of a client, unmounts, and runs lockfs up. When they go on,
// they have no mount any more, and start again.
func TestUpBeforeTheDaemonKnowsOfTheUnmount(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a, b := newBareHost(t, net, "a"), newBareHost(t, net, "b")
	a.mustLockfs(t, "up", "--bootstrap")
	b.mustLockfs(t, "up", strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "client")))
	for _, h := range []*upHost{b, a} {
		daemon := h.daemon(t)
		h.MustRun(t, "kill", "-STOP", daemon)
		h.MustRun(t, "umount", "--lazy", h.mount)
		up := h.Start("env", "LOCKFS_MOUNT="+h.mount, h.program, "up")
		require.NoError(t, up.WaitOutput("process "+daemon))
		h.MustRun(t, "kill", "-CONT", daemon)
		require.NoError(t, up.Wait(), up.Log())
		require.Contains(t, up.Stdout(), h.mount+" works")
		require.Equal(t, 1, testcluster.CountMounts(t, h.Host, h.mount))
	}
}

// TestMountPointIsProtected by lockfs up, also below a mount that is there, until the host leaves.
func TestMountPointIsProtected(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a, b := newBareHost(t, net, "a"), newBareHost(t, net, "b")
	a.mustLockfs(t, "up", "--bootstrap")
	said := b.mustLockfs(t, "up", strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "client")))
	require.Contains(t, said, "directory /mnt/locks is protected while lockfs is not mounted: the directory below the mount is immutable\n")
	require.Contains(t, b.mustLockfs(t, "up"), "everything is as it should be")
	require.Equal(t, "up,protected /mnt/locks\n", b.asOther(t, "cat", "/etc/lockfs/mount-points"))
	require.Contains(t, b.doctor(t), "ok mount-points /mnt/locks: the directory below the mount is immutable, so nothing can lock there while lockfs is not mounted")

	b.mustLockfs(t, "mount-point", "unprotect")
	require.Contains(t, b.doctor(t), "warning mount-points /mnt/locks: programs can lock in the directory below the mount while lockfs is not mounted")
	b.mustLockfs(t, "mount-point", "protect")
	require.Contains(t, b.doctor(t), "ok mount-points /mnt/locks: ")
	b.locks(t, a)

	b.mustLockfs(t, "down")
	b.requireBare(t, "Operation not permitted")
	require.Contains(t, b.doctor(t), "warning mount-points lockfs is not mounted at /mnt/locks, but /etc/lockfs/lockfs.env configures it")
	b.requireRefusals(t)
	require.Contains(t, b.mustLockfs(t, "up"), "/mnt/locks works")
	b.mustLockfs(t, "run", "/mnt/locks/x.lock", "--", "true")

	// The protection follows the mount point.
	b.MustRun(t, "env", "LOCKFS_MOUNT=/mnt/other", b.program, "up")
	b.MustRun(t, "touch", "/mnt/locks/free")
	b.mount = "/mnt/other"
	b.MustRun(t, "sh", "-c", "set -C; echo held > /mnt/other/lock")
	require.Equal(t, "held\n", a.MustRun(t, "cat", "/mnt/locks/lock"))
	b.mustLockfs(t, "leave")
	b.MustRun(t, "sh", "-c", "set -C; echo mine > /mnt/other/x.lock")
	require.Contains(t, b.doctor(t), "ok mount-points no mount point is configured here")
}

// TestMountPointIsCovered where its file system has no immutable attribute.
func TestMountPointIsCovered(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a, b := newBareHost(t, net, "a"), newBareHost(t, net, "b")
	b.MustRun(t, "sh", "-c", "mkdir /mnt/ram && mount -t ramfs ram /mnt/ram")
	b.mount = "/mnt/ram/locks"
	a.mustLockfs(t, "up", "--bootstrap")
	said := b.mustLockfs(t, "up", strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "client")))
	require.Contains(t, said, "a read-only tmpfs covers the directory below the mount\n")
	require.Contains(t, b.doctor(t), "warning mount-points /mnt/ram/locks: a read-only tmpfs covers the directory below the mount, but only from the first start")
	b.killAll(t)
	require.Contains(t, b.mustLockfs(t, "up"), b.mount+" works")
	b.MustRun(t, "sh", "-c", "set -C; echo held > /mnt/ram/locks/lock")
	require.Equal(t, "held\n", a.MustRun(t, "cat", "/mnt/locks/lock"))
	b.MustRun(t, "umount", "--lazy", b.mount)
	b.requireBare(t, "Read-only file system")
	b.requireRefusals(t)
	require.Contains(t, b.mustLockfs(t, "up"), b.mount+" works")
	b.mustLockfs(t, "down")
	b.requireBare(t, "Read-only file system")
	b.mustLockfs(t, "up")
	b.mustLockfs(t, "leave")
	b.MustRun(t, "sh", "-c", "set -C; echo mine > /mnt/ram/locks/x.lock")
}

// TestMountHelperProtects a mount point of /etc/fstab.
func TestMountHelperProtects(t *testing.T) {
	t.Parallel()
	c := testcluster.StartInsecureCluster(t, 1)
	h := &upHost{c.AddClient(t, "m"), c.Program, "/mnt/locks"}
	h.MustRun(t, "sh", "-ec", `
		mount -t tmpfs tmpfs /mnt
		mkdir /mnt/upper /mnt/work /mnt/locks /mnt/etc /mnt/etcwork
		mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/mnt/upper,workdir=/mnt/work /usr/sbin
		[ /sbin -ef /usr/sbin ] || mount --bind /usr/sbin /sbin
		ln -s "$1" /sbin/mount.lockfs
		mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/etcwork /etc
		echo "$2 /mnt/locks lockfs noauto,insecure,op-timeout=5s 0 0" > /etc/fstab`, "sh", c.Program, c.Nodes[0].Host.Addr())
	h.requireRefusals(t)
	for range 2 {
		h.MustRun(t, "mount", "/mnt/locks")
		h.MustRun(t, c.Program, "run", "/mnt/locks/x.lock", "--", "true")
		h.MustRun(t, "umount", "/mnt/locks")
		h.requireBare(t, "Operation not permitted")
	}
	h.requireRefusals(t)
	require.Contains(t, h.doctor(t), "lockfs is not mounted at /mnt/locks, but /etc/fstab configures it")
	h.MustRun(t, c.Program, "mount-point", "unprotect")
	h.MustRun(t, "mkdir", "/mnt/locks/dir")
	said := h.Start("mount", "/mnt/locks")
	require.NoError(t, said.Wait())
	require.Contains(t, said.Log(), "/mnt/locks is not protected while lockfs is not mounted: the directory has files in it")
}

// TestNewMountReachesOtherNamespaces in the place of a dead one.
func TestNewMountReachesOtherNamespaces(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a := newBareHost(t, net, "a")
	a.MustRun(t, "mount", "--make-rshared", "/mnt")
	a.mustLockfs(t, "up", "--bootstrap")
	other := a.Start("unshare", "--mount", "--propagation", "slave", "sh", "-c", "echo begun $$; exec sleep 1000")
	require.NoError(t, other.WaitOutput("begun "))
	pid := strings.TrimSpace(strings.TrimPrefix(other.Stdout(), "begun "))
	for range 2 {
		a.killAll(t)
		require.Contains(t, a.mustLockfs(t, "up"), a.mount+" works")
		a.MustRun(t, "sh", "-c", "set -C; echo held > /mnt/locks/x.lock")
		require.Equal(t, "held\n", a.MustRun(t, "nsenter", "--target", pid, "--mount", "cat", "/mnt/locks/x.lock"))
		for _, of := range []string{pid, "self"} {
			mounts := a.MustRun(t, "cat", "/proc/"+of+"/mounts")
			require.Equal(t, 1, strings.Count(mounts, " /mnt/locks fuse.lockfs "), mounts)
		}
		a.MustRun(t, "rm", "/mnt/locks/x.lock")
	}
}

// requireRefusals checks that commands which take locks or wait for them say that lockfs is not mounted.
func (h *upHost) requireRefusals(t testing.TB) {
	t.Helper()
	h.MustRun(t, "ln", "-sfn", h.mount, "/mnt/link")
	for _, command := range [][]string{
		{"run", h.mount + "/x.lock", "--", "true"}, {"run", "/mnt/link/x.lock", "--", "true"}, {"run", "--slots", "2", h.mount + "/slots", "--", "true"},
		{"wait", h.mount + "/x.lock"}, {"semaphore", "acquire", h.mount + "/x.lock"}, {"tower", "acquire", "--dir", h.mount, "x"},
		{"beads", "acquire", "--holder", "me", h.mount},
	} {
		_, err := h.lockfs(command...)
		require.ErrorContains(t, err, "lockfs is not mounted at "+h.mount+", although /etc/", command)
		require.ErrorContains(t, err, "exit status 125", command)
		_, err = h.Run("setpriv", append([]string{"--reuid", "65534", "--regid", "65534", "--clear-groups", h.program}, command...)...)
		require.ErrorContains(t, err, "lockfs is not mounted at "+h.mount, command)
	}
	_, err := h.Run("env", "SWARM_STATE_DIR="+h.mount, h.program, "swarm", "acquire", "task", "me")
	require.ErrorContains(t, err, "lockfs is not mounted at "+h.mount)
	text, err := h.Run("sh", "-c", `"$@" || :`, "sh", h.program, "semaphore", "acquire", "--json", h.mount+"/x.lock")
	require.NoError(t, err)
	require.Contains(t, text, `"outcome": "failed"`)
	require.Contains(t, text, "lockfs is not mounted at")
}

// doctor returns what lockfs doctor finds, with one blank between the columns.
func (h *upHost) doctor(t testing.TB) string {
	t.Helper()
	text := h.MustRun(t, "sh", "-c", `"$1" doctor || :`, "sh", h.program)
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// asOther runs a program as another user than root.
func (h *upHost) asOther(t testing.TB, command ...string) string {
	t.Helper()
	return h.MustRun(t, "setpriv", append([]string{"--reuid", "65534", "--regid", "65534", "--clear-groups"}, command...)...)
}

// leaderOf asks a host for the name of the leader until there is one.
func leaderOf(t testing.TB, h *upHost) (leader string) {
	t.Helper()
	hosts.Eventually(t, "a leader", func() (string, bool) {
		var status testcluster.Status
		text, err := h.lockfs("status", "--json")
		if err == nil {
			err = json.Unmarshal([]byte(text), &status)
		}
		leader = status.Leader
		return fmt.Sprint(text, err), err == nil && leader != ""
	})
	return leader
}

// freeMountPoint makes a directory that hosts share removable again when the test ends.
func freeMountPoint(t testing.TB, dir string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := os.Lstat(dir); err == nil {
			output, err := exec.Command("chattr", "-i", dir).CombinedOutput()
			require.NoError(t, err, string(output))
		}
	})
}
