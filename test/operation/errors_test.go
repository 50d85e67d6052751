package operation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// aCommand is one of lockfs, in an error that begins with "lockfs: ".
const aCommand = `(^|\n)lockfs: .*\blockfs (--)?[a-z]`

// TestErrorsNameACommand of lockfs that helps who may not do something, and who asks where no majority answers. TestErrorsNameACommand of the
// command itself has what else goes wrong.
func TestErrorsNameACommand(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 3, "--op-timeout", "1s")
	a := c.Nodes[0]
	require.NoError(t, os.Chmod(filepath.Dir(c.Net.Dir()), 0o755)) // for nobody to get to the mount
	program := installFor(t, a.Host, "nobody")
	hosts.Eventually(t, "a directory is made in a second", func() (string, bool) {
		said, err := a.Host.Run("mkdir", "-p", c.Path("held"))
		return said, err == nil
	})
	requireCommand := func(calls []string, command ...string) {
		t.Helper()
		for _, call := range calls {
			words := strings.Fields(strings.NewReplacer("MOUNT", c.Mount, "DATA", a.Data).Replace(call))
			_, err := a.Host.Run(command[0], append(command[1:], words...)...)
			require.Error(t, err, call)
			require.Regexp(t, aCommand, err.Error(), call)
		}
	}
	requireCommand([]string{
		"up", "down", "leave", "token create --role client", "token list", "member add", "member remove b", "member demote b", "rule set x --guard host",
		"rule delete x", "quota set held --bytes 1", "host forget b", "host revoke b", "alarm clear 1", "backup -", "ca add",
	}, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program)

	for _, other := range c.Nodes[1:] {
		other.Kill()
	}
	requireCommand([]string{
		"host forget x --timeout 1s", "host list --timeout 1s", "locks --timeout 1s", "events --timeout 1s", "rule set x --guard host --timeout 1s",
		"member remove b --timeout 1s", "token create --role client --timeout 1s", "backup - --timeout 1s", "run MOUNT/deploy.lock --nonblock -- true",
		"rm --force MOUNT/held",
	}, c.Program)
}

// TestWithoutAQuorumEachCommandNamesTheCause: status, lockfs alone and doctor print the same line, and exit with a code that is not 0. doctor
// reports nothing else that follows from it, such as the clock.
func TestWithoutAQuorumEachCommandNamesTheCause(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	b.Kill()
	const cause = "NO QUORUM: 1 of 2 voters answers (b: connection refused); calls fail until another server is back"
	hosts.Eventually(t, "the cause", func() (string, bool) {
		text, err := a.Host.Run(c.Program, "status")
		return text, err != nil && strings.HasPrefix(text, cause+"\n")
	})
	text, err := a.Host.Run(c.Program, "status", "--json")
	require.Error(t, err)
	var status struct {
		Health struct {
			Confirmed bool `json:"confirmed"`
			Silent    []struct{ Name, Failure string }
		} `json:"health"`
		Leader string `json:"leader"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &status), text)
	require.Len(t, status.Health.Silent, 1)
	require.Equal(t, "b: connection refused", status.Health.Silent[0].Name+": "+status.Health.Silent[0].Failure)
	require.False(t, status.Health.Confirmed)
	require.Empty(t, status.Leader, "no quorum confirms a leader")

	text, err = a.Host.Run(c.Program)
	require.Error(t, err)
	require.True(t, strings.HasPrefix(text, cause+"\nlockfs "), text)
	require.NotContains(t, text, "lockfs up", "the daemon of the mount runs")

	text, err = a.Host.Run(c.Program, "doctor")
	require.Error(t, err)
	require.Regexp(t, `(?m)^failed +servers +`+regexp.QuoteMeta(cause)+"$", text)
	require.NotContains(t, text, "cluster time", text)
	require.NotContains(t, text, "alarms  ", text)
}
