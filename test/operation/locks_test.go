package operation

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestLocksAreListed has a lock file with a flock that another host waits for.
func TestLocksAreListed(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	holder, waiter := testcluster.StartShell(t, a.Host, c.Mount), testcluster.StartShell(t, g.Host, c.Mount)
	holder.Must("mkdir jobs; (set -C; echo $$ > jobs/lock); echo x > data; (set -C; date > other.lock); exec 9<> jobs/lock; flock 9")
	waiter.Must("flock -s jobs/lock true 2> /dev/null & echo begun")

	type advisory struct {
		Kind, Type, State, Host string
	}
	var locks []struct {
		Path     string     `json:"path"`
		State    string     `json:"state"`
		Format   string     `json:"format"`
		Token    uint64     `json:"token"`
		Advisory []advisory `json:"advisory_locks"`
	}
	hosts.Eventually(t, "the queue is shown", func() (string, bool) {
		text, err := a.Lockfs("locks", "jobs", "--json")
		require.NoError(t, err)
		locks = nil
		require.NoError(t, json.Unmarshal([]byte(text), &locks))
		return text, len(locks) == 1 && len(locks[0].Advisory) == 2
	})
	require.Equal(t, []any{"jobs/lock", "held", "none"}, []any{locks[0].Path, locks[0].State, locks[0].Format})
	require.NotZero(t, locks[0].Token)
	require.Equal(t, []advisory{
		{"flock", "exclusive", "held", "a"}, {"flock", "shared", "waiting", "m"},
	}, locks[0].Advisory)

	why := g.Host.MustRun(t, "cat", c.Path(".lockfs/why/jobs/lock"))
	require.Contains(t, why, "flock: exclusive, held by process")
	require.Contains(t, why, "flock: shared, waited for by process")
	text, err := a.Host.Run(c.Program, append([]string{"locks", c.Path("jobs")}, a.Asked()...)...)
	require.NoError(t, err)
	require.Contains(t, text, "jobs/lock")
	require.NotContains(t, text, "other")
	for _, none := range []string{"nosuch", "jobs/nosuch", "jobs/lock/nosuch", c.Path("nosuch"), "no/such"} {
		_, err = a.Lockfs("locks", none)
		require.Error(t, err, none)
	}
	_, err = a.Lockfs("locks", "jobs/")
	require.NoError(t, err)
	text, err = a.Lockfs("locks")
	require.NoError(t, err)
	require.Contains(t, text, "other")
	require.NotContains(t, text, "data")

	holder.Must("flock -u 9")
	waiter.Must("wait")
	t.Run("to whom could stat and read them", func(t *testing.T) { eachSeesHisOwn(t, a, c) })
}

// TestLocksAreSelected by state and host, with their expiry, waiters, and a mark of those that break a rule of their format.
func TestLocksAreSelected(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	list := func(args ...string) string {
		t.Helper()
		text, err := a.Lockfs(append([]string{"locks"}, args...)...)
		require.NoError(t, err)
		return text
	}
	require.Equal(t, "no locks\n", list())
	a.Host.MustRun(t, "sh", "-c", `set -C; printf 'pid=%d\ntimestamp=%d\n' $$ $(date +%s) > "$1"`, "sh", c.Path("deploy.sem"))
	g.Host.MustRun(t, "sh", "-c", `set -C; printf 'pid=%d\ntimestamp=2026-01-01T00:00:00Z\n' $$ > "$1"`, "sh", c.Path("iso.sem"))
	holder := g.Host.Start("flock", c.Path("queue"), "sh", "-c", "echo held; exec sleep 1000")
	require.NoError(t, holder.WaitOutput("held"))
	a.Host.Start("flock", c.Path("queue"), "true")
	hosts.Eventually(t, "the waiter", func() (string, bool) {
		text := list()
		return text, regexp.MustCompile(`(?m)^queue .* 1$`).MatchString(text)
	})
	all := list()
	require.Regexp(t, `(?m)^PATH +STATE +FORMAT +HOLDER +TOKEN +AGE +EXPIRES +WAITING$`, all)
	require.Regexp(t, `(?m)^deploy\.sem +held +semaphore +.* in [0-9hms]+ *$`, all)
	require.Regexp(t, `(?m)^iso\.sem +held, invalid +semaphore +.* never *$`, all)
	for _, selected := range []struct {
		flags []string
		paths []string
	}{
		{[]string{"--state", "invalid"}, []string{"iso.sem"}},
		{[]string{"--state", "waiting"}, []string{"queue"}},
		{[]string{"--state", "waiting,invalid"}, []string{"iso.sem", "queue"}},
		{[]string{"--state", "held", "--host", "a"}, []string{"deploy.sem", "queue"}},
		{[]string{"--host", "m"}, []string{"iso.sem", "queue"}},
		{[]string{"--host", "nosuch"}, nil},
	} {
		var locks []struct{ Path, Invalid string }
		require.NoError(t, json.Unmarshal([]byte(list(append(selected.flags, "--json")...)), &locks))
		var paths []string
		for _, l := range locks {
			paths = append(paths, l.Path)
			require.Equal(t, l.Path == "iso.sem", l.Invalid != "", l.Path)
		}
		require.ElementsMatch(t, selected.paths, paths, "%v", selected.flags)
	}
	require.Equal(t, "no lock matches; 3 locks do not\n", list("--state", "stale"))
	_, err := a.Lockfs("locks", "--state", "nosuch")
	require.ErrorContains(t, err, "give one of held, stale")

	found, err := a.Lockfs("host", "list")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^NAME +STATE +SINCE +SESSIONS +LOCKS$`, found)
	require.Regexp(t, `(?m)^a +reachable .* 1$`, found)
	require.Regexp(t, `(?m)^m +reachable .* 2$`, found)
}

// eachSeesHisOwn has the commands ask the mount for users other than root.
func eachSeesHisOwn(t *testing.T, a *testcluster.Node, c *testcluster.Cluster) {
	require.NoError(t, os.Chmod(filepath.Dir(c.Net.Dir()), 0o755)) // for others to get to the mount
	program := installFor(t, a.Host, "nobody")
	s := testcluster.StartShell(t, a.Host, c.Mount)
	s.Must("mkdir seen; cd seen; mkdir -m 700 closed; mkdir -m 710 group; chgrp 77 group")
	for _, lock := range []string{"closed/lock", "group/lock", "public", "private"} {
		s.Must(fmt.Sprintf("echo '%s' > .new; chmod %s .new; mv -n .new %s",
			fmt.Sprintf(`{"task_id":"t","worker":"of-%s","acquired_at":"2100-01-01T00:00:00Z"}`, lock),
			map[bool]string{true: "600", false: "644"}[lock == "private"], lock))
	}
	type user struct {
		groups string
		sees   []string // in brackets what he cannot read
	}
	for id, user := range map[string]user{
		"0":     {"0", []string{"seen/closed/lock", "seen/group/lock", "seen/private", "seen/public"}},
		"65534": {"65534", []string{"[seen/private]", "seen/public"}},
		"1234":  {"5,77", []string{"[seen/private]", "seen/group/lock", "seen/public"}},
	} {
		run := func(args ...string) string {
			as := []string{"--reuid", id, "--regid", id, "--groups", user.groups, "env", "--chdir=" + c.Mount, program}
			if id == "0" {
				args = append(args, a.Asked()...)
			}
			return a.Host.MustRun(t, "setpriv", append(as, args...)...)
		}
		var locks []struct{ Path, Holder string }
		require.NoError(t, json.Unmarshal([]byte(run("locks", "seen", "--json")), &locks))
		var sees []string
		for _, lock := range locks {
			sees = append(sees, seenAs(lock.Path, lock.Holder))
		}
		require.ElementsMatch(t, user.sees, sees, "user %s", id)
		hosts.Eventually(t, "the events are told", func() (string, bool) {
			told := make(map[string]bool)
			for line := range strings.Lines(run("events", "--json")) {
				var event struct {
					Path   string `json:"lock_path"`
					Holder string `json:"holder"`
				}
				require.NoError(t, json.Unmarshal([]byte(line), &event))
				if strings.HasPrefix(event.Path, "seen/") && strings.Contains(event.Holder, "of-") || strings.HasSuffix(event.Path, "/private") {
					told[seenAs(event.Path, event.Holder)] = true
				}
				require.False(t, id != "0" && strings.Contains(event.Path, "closed/"), line)
			}
			return fmt.Sprint(told), slices.Equal(slices.Sorted(maps.Keys(told)), slices.Sorted(slices.Values(user.sees)))
		})
	}
	below := a.Host.MustRun(t, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program, "locks", c.Path("seen"))
	require.Contains(t, below, "seen/public", "the mount is that of the path")
	require.NotContains(t, below, "closed")
}

// seenAs puts a path into brackets if it is not told who holds it.
func seenAs(path, holder string) string {
	if strings.Contains(holder, "of-"+strings.TrimPrefix(path, "seen/")) {
		return path
	}
	return "[" + path + "]"
}
