package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// An upHost is a host that lockfs was never on: what lockfs up writes there is its own, and systemd does not run.
type upHost struct {
	*hosts.Host
	program string
	mount   string // where README has /locks
}

func newUpHost(t testing.TB, net *hosts.Net, name string) *upHost {
	t.Helper()
	h := &upHost{net.Host(name), testcluster.Program(t), filepath.Join(net.Dir(), "locks")}
	freeMountPoint(t, h.mount)
	h.MustRun(t, "sh", "-ec", `
		findmnt --raw --noheadings --output TARGET --types fuse.lockfs | xargs --no-run-if-empty umount --lazy
		mount -t tmpfs of-this-host /mnt
		for dir in etc var/lib var/log; do
			mkdir -p "/mnt/$dir/new" "/mnt/$dir/work"
			mount -t overlay of-this-host -o "lowerdir=/$dir,upperdir=/mnt/$dir/new,workdir=/mnt/$dir/work" "/$dir"
		done
		mount -t tmpfs of-this-host /run`)
	return h
}

// install puts a program where a package would, in the place of the one before.
func (h *upHost) install(t testing.TB, built string) {
	t.Helper()
	h.program = "/mnt/lockfs"
	h.MustRun(t, "sh", "-c", `cp "$1" /mnt/new && mv /mnt/new "$2"`, "sh", built, h.program)
}

// lockfs runs the program as root.
func (h *upHost) lockfs(args ...string) (string, error) {
	return h.Run("env", append([]string{"LOCKFS_MOUNT=" + h.mount, h.program}, args...)...)
}

func (h *upHost) mustLockfs(t testing.TB, args ...string) string {
	t.Helper()
	text, err := h.lockfs(args...)
	require.NoError(t, err)
	return text
}

// asNobody runs the program as another user, who has no mount of his own and names no server.
func (h *upHost) asNobody(t testing.TB, args ...string) string {
	t.Helper()
	return h.MustRun(t, "setpriv", append([]string{"--reuid", "65534", "--regid", "65534", "--clear-groups", h.program}, args...)...)
}

// daemon is the pid of the daemon, as the host sees it. While it executes another program, it has no command line for a moment.
func (h *upHost) daemon(t testing.TB) (pid string) {
	t.Helper()
	hosts.Eventually(t, "a daemon", func() (string, bool) {
		found, err := h.Run("pgrep", "--oldest", "--full", "^"+h.program+" (server|mount)")
		pid = strings.TrimSpace(found)
		return fmt.Sprint(err), err == nil
	})
	return pid
}

// TestFiveCommands is README's way from empty hosts to three servers and two mounts, and back.
func TestFiveCommands(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	var all []*upHost
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, newUpHost(t, net, name))
	}
	a, b, c, d, e := all[0], all[1], all[2], all[3], all[4]
	_, err := d.lockfs("status")
	require.ErrorContains(t, err, "no lockfs daemon runs on this host (looked in /run/lockfs): run the command on a server or a host with a mount")
	_, err = d.lockfs("up")
	require.ErrorContains(t, err, "this host is in no cluster")

	began := a.mustLockfs(t, "up", "--bootstrap")
	token := func(role string) string {
		found := regexp.MustCompile(`(?m)^    lockfs up (lockfs-` + role + `-\S+)$`).FindStringSubmatch(began)
		require.NotNil(t, found, began)
		return found[1]
	}
	require.NotContains(t, began, "voters")
	second := b.mustLockfs(t, "up", token("server"))
	require.Contains(t, second, "voters    2 so far, and neither may fail; with a third server, one may")
	require.NotContains(t, second, "warning")
	_, err = c.lockfs("up", "--nonvoter", token("client"))
	require.ErrorContains(t, err, "--nonvoter is for a server")
	require.Contains(t, c.mustLockfs(t, "up", "--nonvoter", token("server")), "2 so far")
	require.Contains(t, c.mustLockfs(t, "member", "list"), "non-voter")
	c.mustLockfs(t, "member", "promote", "c")
	hosts.Eventually(t, "c has heard of its own vote", func() (string, bool) {
		said := c.mustLockfs(t, "up")
		return said, !strings.Contains(said, "voters")
	})
	d.mustLockfs(t, "up", token("client"))
	e.MustRun(t, "sh", "-ec", `echo "$3" > /run/token; LOCKFS_MOUNT=$1 "$2" up @/run/token`, "sh", e.mount, e.program, token("client"))

	// Everybody sees the cluster, on each host, without a flag.
	for _, h := range all {
		for _, ask := range []func(testing.TB, ...string) string{h.mustLockfs, h.asNobody} {
			hosts.Eventually(t, "all three answer", func() (string, bool) {
				text := ask(t, "status", "--json")
				var status testcluster.Status
				require.NoError(t, json.Unmarshal([]byte(text), &status), text)
				answer := 0
				for _, n := range status.Nodes {
					if n.Error == "" {
						answer++
					}
				}
				return text, status.Leader != "" && answer == 3 && len(status.Nodes) == 3
			})
		}
		require.Contains(t, h.asNobody(t, "session", "list"), h.Name())
	}
	require.NoError(t, os.Chmod(filepath.Dir(net.Dir()), 0o755)) // for nobody to get to the mount
	a.MustRun(t, "sh", "-c", `set -C; date +%s > "$1/deploy.lock"`, "sh", a.mount)
	for _, h := range all {
		for _, ask := range []func(testing.TB, ...string) string{h.mustLockfs, h.asNobody} {
			require.Contains(t, ask(t, "locks"), "deploy.lock")
			require.Contains(t, ask(t, "locks", "deploy.lock"), "deploy.lock")
			require.Contains(t, ask(t, "why", "deploy.lock"), "state: held\n")
			require.Contains(t, ask(t, "why", "--json", filepath.Join(h.mount, "deploy.lock")), `"state": "held"`)
			hosts.Eventually(t, "the event of the lock", func() (string, bool) {
				text := ask(t, "events")
				return text, strings.Contains(text, "lock_acquired")
			})
		}
	}
	for _, h := range all {
		requireVersions(t, h, "a", "b", "c", "d", "e")
	}
	t.Run("DoctorAndPage", func(t *testing.T) {
		for _, h := range []*upHost{a, d} {
			h.requireDoctorsOrder(t)
			ui := h.Start(h.program, "ui", "--print")
			require.NoError(t, ui.WaitOutput("ssh -L 7422:127.0.0.1:7422 "), "the same port, with and without a server")
			require.NoError(t, ui.WaitOutput("/login/"))
			require.Regexp(t, `^http://lockfs-\w+\.localhost:7422/login/\w+\n`, ui.Stdout())
			require.Contains(t, ui.Log(), "This address works once, for 2 minutes.")
			ui.Kill()
		}
	})
	for _, ask := range []func(testing.TB, ...string) string{d.mustLockfs, d.asNobody} {
		var stands string
		hosts.Eventually(t, "all three answer", func() (string, bool) {
			stands = ask(t)
			return stands, strings.Contains(stands, "; 3 of 3 voters answer\n")
		})
		require.Contains(t, stands, "mounted   "+d.mount+"\n")
		require.Contains(t, stands, "locks     1 held")
		require.LessOrEqual(t, strings.Count(stands, "\n"), 10, stands)
	}
	a.MustRun(t, "rm", filepath.Join(a.mount, "deploy.lock"))
	_, err = a.lockfs("why", "deploy.lock")
	require.ErrorContains(t, err, "deploy.lock does not exist on the mount at "+a.mount)
	require.Equal(t, "/etc/lockfs/lockfs.env 600\n", a.MustRun(t, "stat", "-c", "%n %a", "/etc/lockfs/lockfs.env"))
	require.NotContains(t, a.MustRun(t, "cat", "/etc/lockfs/lockfs.env"), "BOOTSTRAP", "should its data ever be lost")
	require.NotContains(t, b.MustRun(t, "cat", "/etc/lockfs/lockfs.env", "/var/log/lockfs.log"), token("server"))

	t.Run("LocksExclude", func(t *testing.T) {
		dir := filepath.Join(a.mount, "job")
		a.MustRun(t, "mkdir", dir)
		w := testcluster.NewWitness(t, filepath.Join(net.Dir(), "witness"))
		var on []*hosts.Host
		for _, h := range all {
			on = append(on, h.Host)
		}
		job := testcluster.StartJob(t, testcluster.Clients[0], dir, w, 10, on...)
		w.Stop(t) // once each has had it ten times
		job.Wait(t)
		require.Empty(t, w.Verdict(t))
	})
	t.Run("UpAgain", func(t *testing.T) {
		for _, h := range all {
			require.Contains(t, h.mustLockfs(t, "up"), "everything is as it should be")
		}
		require.Contains(t, b.mustLockfs(t, "up", token("server")), "everything is as it should be", "the token is not needed")
		_, err := d.lockfs("up", token("server"))
		require.ErrorContains(t, err, "this host is d, a client already")
		for _, h := range []*upHost{b, d} {
			killed := h.daemon(t)
			h.MustRun(t, "kill", "-9", killed)
			hosts.Eventually(t, "that another process goes on", func() (string, bool) {
				said, err := h.lockfs("up")
				return said, err == nil && h.daemon(t) != killed && strings.Contains(said, "everything is as it should be")
			})
			h.killAll(t)
			require.Contains(t, h.mustLockfs(t, "up"), "daemon    process ")
		}
		a.locks(t, d)
	})
	t.Run("DownAndUp", func(t *testing.T) {
		for _, h := range []*upHost{c, e} {
			user := h.Start("sh", "-c", `cd "$1" && echo there && exec sleep 1000`, "sh", h.mount)
			require.NoError(t, user.WaitOutput("there"))
			_, err := h.lockfs("down")
			require.ErrorContains(t, err, "is in use")
			require.ErrorContains(t, err, "): its working directory", "of sh, or of sleep already")
			h.MustRun(t, "stat", filepath.Join(h.mount, ".lockfs"))
			user.Kill()
			require.Contains(t, h.mustLockfs(t, "down"), "daemon    stopped")
			require.Contains(t, h.mustLockfs(t, "down"), "it is stopped already")
			_, err = h.lockfs("status")
			require.ErrorContains(t, err, "no lockfs daemon runs on this host")
			a.locks(t, b)
			require.Contains(t, h.mustLockfs(t, "up"), h.mount+" works")
			h.locks(t, a)
		}
	})
	t.Run("RevokedAndBack", func(t *testing.T) {
		a.mustLockfs(t, "host", "revoke", "d")
		again := strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "client", "--host", "d"))
		require.Contains(t, d.mustLockfs(t, "up", again), "identity  d.client.lockfs")
		d.locks(t, a)
	})
	t.Run("Leave", func(t *testing.T) {
		require.Contains(t, e.mustLockfs(t, "leave"), "identity  revoked")
		require.Contains(t, e.mustLockfs(t, "leave"), "this host is in no cluster")
		require.Contains(t, a.mustLockfs(t, "host", "admitted", "--json"), `"state": "revoked"`)
		left := c.mustLockfs(t, "leave", "--remove-data")
		require.Contains(t, left, "2 servers are left: none of them may fail")
		require.Empty(t, c.MustRun(t, "find", "/etc/lockfs", "/var/lib/lockfs", "-type", "f"))
		awaitMembers(t, a.lockfs, "a", "b")
		_, err := b.lockfs("leave")
		require.NoError(t, err)
		_, err = a.lockfs("leave")
		require.ErrorContains(t, err, "this is the only server")
		require.Contains(t, a.mustLockfs(t, "up"), a.mount+" works")
		a.locks(t, d)

		// They may come back, with tokens of their own.
		back := a.mustLockfs(t, "token", "create", "--role", "server", "--host", "c")
		c.mustLockfs(t, "up", strings.TrimSpace(back))
		c.locks(t, d)
	})
}

// requireVersions waits until status and session list have the version of this program for each host's mount, and status for each server.
func requireVersions(t testing.TB, h *upHost, names ...string) {
	t.Helper()
	version := strings.TrimPrefix(strings.TrimSpace(h.mustLockfs(t, "version")), "lockfs ")
	hosts.Eventually(t, "the versions of all programs", func() (string, bool) {
		status, sessions := h.mustLockfs(t, "status"), h.mustLockfs(t, "session", "list")
		complete := true
		for _, name := range names {
			row := regexp.MustCompile(`(?m)^[0-9a-f]{16} +` + name + ` .* ` + regexp.QuoteMeta(version) + ` +1$`)
			complete = complete && row.MatchString(status) && row.MatchString(sessions)
		}
		servers := regexp.MustCompile(`(?m)^\w+ +\S+:7420 +(leader|follower) +`+regexp.QuoteMeta(version)+` +1 `).FindAllString(status, -1)
		return status + sessions, complete && len(servers) == 3
	})
}

// requireDoctorsOrder: lockfs doctor prints a summary, then trouble first, and on a mount nothing unknown.
func (h *upHost) requireDoctorsOrder(t testing.TB) {
	t.Helper()
	text := h.MustRun(t, "sh", "-c", `"$1" doctor || :`, "sh", h.program)
	summary, findings, _ := strings.Cut(text, "\n")
	require.Regexp(t, `^(all is well: \d+ findings are ok|(\d+ (failed|warning), )+\d+ ok)$`, summary)
	rank := map[string]int{"failed": 0, "warning": 1, "ok": 2}
	last := 0
	for line := range strings.Lines(findings) {
		if strings.HasPrefix(line, " ") {
			continue // advice
		}
		state, _, _ := strings.Cut(line, " ")
		require.Contains(t, rank, state, text)
		require.GreaterOrEqual(t, rank[state], last, text)
		last = rank[state]
	}
}

// TestUpStartsARestoredServer: the only server is lost with its settings. lockfs restore prints the command that starts the server again,
// with the name and the address in its directory, and mounts come back.
func TestUpStartsARestoredServer(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a, d := newUpHost(t, net, "a"), newUpHost(t, net, "d")
	a.mustLockfs(t, "up", "--bootstrap")
	d.mustLockfs(t, "up", strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "client")))
	a.MustRun(t, "mkdir", filepath.Join(a.mount, "before"))
	file, seal := filepath.Join(net.Dir(), "locks.backup"), filepath.Join(net.Dir(), "ca.key")
	a.MustRun(t, "cp", "/var/lib/lockfs/ca.key", seal)
	lose := func() {
		a.killAll(t)
		a.MustRun(t, "sh", "-c", "rm -rf /etc/lockfs /var/lib/lockfs /run/lockfs")
		_, err := a.lockfs("up")
		require.ErrorContains(t, err, "this host is in no cluster")
	}
	comesBack := func() {
		t.Helper()
		hosts.Eventually(t, "the mount of d comes back", func() (string, bool) {
			text, err := d.Run("ls", d.mount)
			return fmt.Sprint(text, err), err == nil && strings.Contains(text, "before")
		})
		d.locks(t, a)
	}
	restore := []string{"restore", file, "--name", "z", "--addr", a.Addr() + ":7420", "--ca-key", seal, "--data"}
	for _, c := range []struct {
		data  string
		start []string
	}{{"/var/lib/lockfs", []string{"up"}}, {"/var/lib/other", []string{"up", "--data", "/var/lib/other"}}} {
		a.MustRun(t, "rm", "-f", file)
		a.mustLockfs(t, "backup", file)
		lose()
		said := a.mustLockfs(t, append(restore, c.data)...)
		require.True(t, strings.HasSuffix(said, "\nnow run: lockfs "+strings.Join(c.start, " ")+"\n"), said)
		require.Contains(t, a.mustLockfs(t, c.start...), "lockfs: z, a server\n")
		require.Contains(t, a.mustLockfs(t, "member", "list"), a.Addr()+":7420")
		comesBack()
		require.Contains(t, a.mustLockfs(t, "up"), "everything is as it should be")
	}
	// With settings of the lost server under another name.
	a.MustRun(t, "rm", "-f", file)
	a.mustLockfs(t, "backup", file)
	a.killAll(t)
	a.MustRun(t, "sh", "-c", "rm -rf /var/lib/other /run/lockfs")
	a.mustLockfs(t, "restore", file, "--name", "y", "--addr", a.Addr()+":7420", "--ca-key", seal, "--data", "/var/lib/other")
	require.Contains(t, a.mustLockfs(t, "up"), "lockfs: y, a server\n")
	comesBack()

	lose()
	said := a.mustLockfs(t, "restore", file, "--name", "z", "--addr", a.Addr()+":7420", "--insecure", "--data", "/var/lib/lockfs")
	require.Contains(t, said, "\nnow run: lockfs server --insecure --name z --data /var/lib/lockfs --addr "+a.Addr()+":7420 --mount /locks\n")
	_, err := a.lockfs("up")
	require.ErrorContains(t, err, "/var/lib/lockfs has the data of server z, without a certificate")
}

// TestDownKeepsTheQuorum: a server without which the others have none is stopped with --force only.
func TestDownKeepsTheQuorum(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a, b, d := newUpHost(t, net, "a"), newUpHost(t, net, "b"), newUpHost(t, net, "d")
	a.mustLockfs(t, "up", "--bootstrap")
	d.mustLockfs(t, "up", strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "client")))
	_, err := a.lockfs("down")
	require.ErrorContains(t, err, "this is the only server, and 1 other hosts have the mount")
	b.mustLockfs(t, "up", strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "server")))
	hosts.Eventually(t, "b is a voter, and so needed", func() (string, bool) {
		_, err := b.lockfs("down")
		if err == nil {
			b.mustLockfs(t, "up")
			return "stopped", false
		}
		return err.Error(), strings.Contains(err.Error(), "without it 1 of 2 voters would answer")
	})
	d.locks(t, b)
	require.Contains(t, b.mustLockfs(t, "down", "--force"), "daemon    stopped")
	hosts.Eventually(t, "no quorum", func() (string, bool) {
		said, err := a.lockfs("status")
		return said, err != nil && strings.HasPrefix(said, "NO QUORUM: 1 of 2 voters answers (b: ")
	})
	require.Contains(t, a.mustLockfs(t, "down"), "daemon    stopped", "nothing works that it could keep")
}

// TestUpAfterALostDiskMakesNoCluster, also with --bootstrap: the host was set up as a server, and its cluster may live. A token brings it back.
func TestUpAfterALostDiskMakesNoCluster(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a, b, c := newUpHost(t, net, "a"), newUpHost(t, net, "b"), newUpHost(t, net, "c")
	a.mustLockfs(t, "up", "--bootstrap")
	require.NotContains(t, a.mustLockfs(t, "up", "--bootstrap"), "lockfs-server-", "the tokens were printed")
	for _, h := range []*upHost{b, c} {
		h.mustLockfs(t, "up", strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "server")))
	}
	a.killAll(t)
	a.MustRun(t, "sh", "-c", "rm -rf /var/lib/lockfs/* /run/lockfs/*")
	for _, again := range [][]string{{"up"}, {"up", "--bootstrap"}} {
		_, err := a.lockfs(again...)
		require.ErrorContains(t, err, "its identity in /var/lib/lockfs is lost")
		require.ErrorContains(t, err, "token create --role server --host a")
	}
	require.Empty(t, a.MustRun(t, "find", "/var/lib/lockfs", "-type", "f"))
	awaitMembers(t, b.lockfs, "a", "b", "c")
	b.mustLockfs(t, "member", "remove", "a")
	a.mustLockfs(t, "up", strings.TrimSpace(b.mustLockfs(t, "token", "create", "--role", "server", "--host", "a")))
	a.locks(t, c)
}

// TestDownDuringAnUpgrade stops lockfs while its daemon hands its mount over, and answers nobody: it is found all the same, and none
// goes on afterwards. lockfs up finds it too.
func TestDownDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a, b := newUpHost(t, net, "a"), newUpHost(t, net, "b")
	a.mustLockfs(t, "up", "--bootstrap")
	b.mustLockfs(t, "up", strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", "client")))
	for _, h := range []*upHost{b, a} {
		during := func(moment string, args ...string) string {
			t.Helper()
			return h.MustRun(t, "sh", append([]string{"-ec", `
				pid=$1 moment=$2; shift 2
				handed() { grep --count "the mount is handed over" /var/log/lockfs.log || :; }
				before=$(handed)
				kill -HUP "$pid"
				case $moment in handed) while [ "$(handed)" -eq "$before" ]; do :; done ;; esac
				exec "$@"`, "sh", h.daemon(t), moment, h.program}, args...)...)
		}
		for _, moment := range []string{"asked", "handed"} {
			daemon := h.daemon(t)
			require.Contains(t, during(moment, "up"), "everything is as it should be", moment)
			require.Equal(t, daemon, h.daemon(t), moment)
			said := during(moment, "down", "--force")
			require.Contains(t, said, "daemon    stopped", moment)
			hosts.Eventually(t, "nothing is left", func() (string, bool) {
				left := processes(h.Host, "lockfs (server|mount|guard)( |$)")
				return fmt.Sprint(left), len(left) == 0
			})
			require.Contains(t, h.mustLockfs(t, "down"), "it is stopped already", moment)
			require.Zero(t, testcluster.CountMounts(t, h.Host, h.mount), moment)
			h.mustLockfs(t, "up")
			said = during(moment, "down")
			require.Contains(t, said, "daemon    stopped", moment)
			require.Contains(t, h.mustLockfs(t, "down"), "it is stopped already", moment)
			require.Contains(t, h.mustLockfs(t, "up"), h.mount+" works", moment)
		}
		if h == b {
			b.mustLockfs(t, "down") // else a, the only server, refuses to stop
		}
	}
}

// members is what the host's daemon names.
// locks takes a lock here that another host sees held, and drops it.
func (h *upHost) locks(t testing.TB, other *upHost) {
	t.Helper()
	lock := filepath.Join(h.mount, "lock")
	h.MustRun(t, "sh", "-c", "set -C; echo held > "+lock)
	_, err := other.Run("sh", "-c", "set -C; echo stolen > "+lock)
	require.ErrorContains(t, err, "cannot")
	other.MustRun(t, "rm", lock)
}

// killAll kills all that serves the mount, until it is dead: a guard may just be starting another process.
func (h *upHost) killAll(t testing.TB) {
	t.Helper()
	hosts.Eventually(t, "a dead mount", func() (string, bool) {
		said, _ := h.Run("pkill", "-9", "--full", "lockfs (server|mount|guard)( |$)")
		_, err := h.Run("ls", h.mount)
		return fmt.Sprint(said, err), err != nil && strings.Contains(err.Error(), "not connected")
	})
}

// systemctl does of systemd what lockfs up asks of it, with the unit and the settings as they are written.
const systemctl = `#!/bin/sh
set -e
for unit; do :; done
file=/etc/systemd/system/$unit
running() { [ -e /run/main.pid ] && kill -0 "$(cat /run/main.pid)" 2> /dev/null; }
case $1 in
daemon-reload) ;;
enable) touch /run/enabled ;;
disable) rm -f /run/enabled ;;
show)
	case $2 in
	--property=MainPID) if running; then cat /run/main.pid; else echo 0; fi ;;
	*) if running; then echo ActiveState=active; else echo ActiveState=inactive; fi ;;
	esac ;;
reload) kill -HUP "$(cat /run/main.pid)" ;;
start)
	running && exit
	set -a
	. "$(sed -n s/^EnvironmentFile=//p "$file")"
	eval "exec setsid $(sed -n s/^ExecStart=//p "$file")" > /run/journal 2>&1 < /dev/null &
	echo $! > /run/main.pid ;;
stop)
	running || exit 0
	kill "$(cat /run/main.pid)"
	while running; do sleep 0.1; done ;;
*) exit 64 ;;
esac
`

// TestUpWithSystemd has systemd's part done by a script, which the host has in its place. A new program goes on with the unit's mount, of
// which programs that use it notice nothing.
func TestUpWithSystemd(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	a := newUpHost(t, net, "a")
	a.install(t, a.program)
	a.MustRun(t, "sh", "-ec", `mkdir -p /run/systemd/system /run/bin; echo "$1" > /run/bin/systemctl; chmod +x /run/bin/systemctl`, "sh", systemctl)
	lockfs := func(args ...string) (string, error) {
		return a.Run("env", append([]string{"PATH=/run/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LOCKFS_MOUNT=" + a.mount, a.program}, args...)...)
	}
	must := func(args ...string) string {
		t.Helper()
		text, err := lockfs(args...)
		require.NoError(t, err)
		return text
	}
	require.Contains(t, must("up", "--bootstrap"), "daemon    lockfs-server.service, enabled")
	a.MustRun(t, "stat", "/run/enabled")
	require.Equal(t, "644\n", a.MustRun(t, "stat", "-c", "%a", "/etc/systemd/system/lockfs-server.service"))
	a.locks(t, a)
	require.Contains(t, must("up"), "everything is as it should be")

	daemon := a.daemon(t)
	u := startUser(t, a.Host, "python3", testcluster.ClientPath(t, "unnoticed.py"), a.mount)
	before := strings.TrimPrefix(strings.TrimSpace(must("version")), "lockfs ")
	a.install(t, testcluster.NextProgram(t))
	require.Contains(t, must("up"), "daemon    lockfs-server.service, enabled; "+before+" → next\n")
	require.Equal(t, daemon, a.daemon(t))
	require.Equal(t, a.MustRun(t, "sha256sum", a.program)[:64], a.MustRun(t, "sha256sum", "/proc/"+daemon+"/exe")[:64])
	hosts.Eventually(t, "the mount was handed over", func() (string, bool) {
		log := a.MustRun(t, "cat", "/run/journal")
		return log, strings.Count(log, goneOn) == 1
	})
	_, err := a.Run("flock", "--nonblock", filepath.Join(a.mount, "held"), "true")
	require.Error(t, err, "the program has it")
	u.requireUnnoticed(t)
	hosts.Eventually(t, "the new version of the mount's program", func() (string, bool) {
		sessions := must("session", "list")
		return sessions, regexp.MustCompile(`(?m)^[0-9a-f]{16} +a .* next +1 to 2$`).MatchString(sessions)
	})
	require.Equal(t, 1, testcluster.CountMounts(t, a.Host, a.mount))
	require.Contains(t, must("up"), "everything is as it should be", "once")

	a.MustRun(t, "rm", "/etc/systemd/system/lockfs-server.service")
	a.MustRun(t, "sh", "-ec", "echo LOCKFS_OP_TIMEOUT=7s >> /etc/lockfs/lockfs.env")
	require.NotContains(t, must("up"), "everything is as it should be", "the unit was gone")
	must("down")
	_, err = a.Run("stat", "/run/enabled")
	require.Error(t, err, "it does not start with the host")
	must("up")
	require.Contains(t, a.MustRun(t, "sh", "-c", `tr '\0' '\n' < "/proc/$(cat /run/main.pid)/environ"`), "LOCKFS_OP_TIMEOUT=7s")
	a.locks(t, a)
	_, err = lockfs("leave")
	require.ErrorContains(t, err, "this is the only server")
	a.locks(t, a)
}
