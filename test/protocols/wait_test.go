package protocols

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestWaitDoesNotPoll waits for a lock on one host that is released on another, and counts what that costs beside a
// script that looks every few milliseconds.
func TestWaitDoesNotPoll(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	holder := testcluster.StartShell(t, a, c.Mount)
	holder.Must("set -C; " + testcluster.SemaphoreContent + " > lock; set +C")

	trace := filepath.Join(c.Net.Dir(), "trace")
	waiter := b.Start("strace", "-f", "-qq", "-e", "trace=%file,inotify_add_watch", "-o", trace, c.Program, "wait", c.Path("lock"), "--json")
	looks := func() int {
		text, err := os.ReadFile(trace)
		require.NoError(t, err)
		return strings.Count(string(text), c.Path("lock"))
	}
	hosts.Eventually(t, "it watches the lock", func() (string, bool) {
		text, err := os.ReadFile(trace)
		return string(text), err == nil && strings.Contains(string(text), "inotify_add_watch")
	})
	poll := func(times int) (seen int) {
		b.MustRun(t, "bash", "-c", `for ((i = 0; i < $2; i++)); do [ -e "$1" ] || exit; sleep 0.01; done`, "bash", c.Path("lock"), fmt.Sprint(times))
		return looks()
	}
	const polls = 120
	early := poll(polls) // it looks a few times at first
	later := poll(polls)
	select {
	case <-waiter.Ended():
		t.Fatal("it has not waited: ", waiter.Log())
	default:
	}
	holder.Must("rm lock")
	require.NoError(t, waiter.Wait(), waiter.Log())
	require.Equal(t, "free", fieldsOf(t, waiter.Stdout())["state"])
	t.Logf("system calls that name the lock, while a script looked %d times: %d, and then %d", polls, early, later-early)
	require.Less(t, later-early, polls/4)
}

func fieldsOf(t testing.TB, text string) (fields map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &fields), text)
	return fields
}

// TestWaitForWhateverEndsALock has locks end in all the ways that a waiter on another host has to notice.
func TestWaitForWhateverEndsALock(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	c.Nodes[0].SetRule(t, "stale*", "--stale-after", "8s")
	for _, end := range []struct {
		name, content, how, state string
	}{
		{"removed", testcluster.SemaphoreContent, "rm removed", "free"},
		{"renamed", testcluster.SemaphoreContent, "mv renamed away", "free"},
		{"process", testcluster.PidContent, "kill -9 $$", "free"},
		{"exited", testcluster.PidContent, "exit 0", "stale"},
		{"stale", testcluster.SemaphoreContent, ":", "stale"},
		{"dir", "", "rmdir dir", "free"},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			holder := testcluster.StartShell(t, a, c.Mount)
			if end.content == "" {
				holder.Must("mkdir " + end.name)
			} else {
				holder.Must("set -C; " + end.content + " > " + end.name)
			}
			_, err := b.Run(c.Program, "wait", c.Path(end.name), "--timeout", "0s")
			require.ErrorContains(t, err, "exit status 76")
			waiter := b.Start(c.Program, "wait", c.Path(end.name), "--json")
			reader := b.Start("cat", c.Path(".lockfs/wait", end.name))
			_, err = fmt.Fprintln(holder.Fifo, end.how)
			require.NoError(t, err)
			require.NoError(t, waiter.Wait(), waiter.Log())
			require.Equal(t, end.state, fieldsOf(t, waiter.Stdout())["state"])
			if end.name == "stale" {
				age := b.MustRun(t, "sh", "-c", `echo $(($(date +%s) - $(sed -n 's/^timestamp=//p' "$1")))`, "sh", c.Path(end.name))
				require.NotContains(t, []string{"7\n", "8\n"}, age, "not for somebody who counts whole seconds")
			}
			require.NoError(t, reader.Wait(), reader.Log())
			require.Equal(t, end.state+"\n", reader.Stdout())
		})
	}
}

// TestWaitFile reads where any program can wait for a lock, which ends as soon as it is told to.
func TestWaitFile(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	require.Equal(t, "free\n", b.MustRun(t, "cat", c.Path(".lockfs/wait/lock")))
	a.MustRun(t, "bash", "-c", `mkdir -m 700 "$1/private"; touch "$1/private/lock"; (umask 077; set -C; echo held > "$1/lock")`, "bash", c.Mount)
	for _, path := range []string{"private/lock", "private/none", "lock"} {
		_, err := b.Run("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "cat", c.Path(".lockfs/wait", path))
		require.ErrorContains(t, err, "Permission denied", path)
	}
	_, err := b.Run("cat", c.Path(".lockfs/wait/none/lock"))
	require.ErrorContains(t, err, "Not a directory")

	waiting := b.Start("cat", c.Path(".lockfs/wait/lock"))
	limited, err := b.Run("timeout", "0.3", "cat", c.Path(".lockfs/wait/lock"))
	require.ErrorContains(t, err, "exit status 124")
	require.Empty(t, limited)
	a.MustRun(t, "bash", "-c", `cd "$1"; rm lock; (set -C; echo mine > lock); mv lock other`, "bash", c.Mount)
	require.NoError(t, waiting.Wait(), waiting.Log())
	require.Equal(t, "free\n", waiting.Stdout())
}
