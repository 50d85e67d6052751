package packages

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// TestANewcomersFiveCommands is the way from the package to the first lock on three hosts, as the chapter packages has it: what is typed
// the same on all of them is one command.
func TestANewcomersFiveCommands(t *testing.T) {
	net := hosts.New(t)
	a, b, c := newRoot(t, net, "a"), newRoot(t, net, "b"), newRoot(t, net, "c")
	pkg := a.bring(t, the(t, released(t, newer), "*.deb"))
	began, commands := time.Now(), 0
	typed := func(line string, on ...*root) (said string) {
		t.Helper()
		commands++
		for _, host := range on {
			said = host.sh(t, line)
		}
		return said
	}
	typed("dpkg --force-unsafe-io --no-triggers -i "+pkg, a, b, c)
	tokens := typed("lockfs up --bootstrap", a)
	token := regexp.MustCompile(`(?m)^    (lockfs up lockfs-server-\S+)$`).FindStringSubmatch(tokens)
	require.NotNil(t, token, tokens)
	for _, host := range []*root{b, c} {
		require.NotContains(t, typed(token[1], host), "warning")
	}
	const take = `set -C; echo "$(hostname) $$" > /locks/first.lock`
	typed(take, c)
	t.Logf("%d commands, %v", commands, time.Since(began).Round(time.Second))
	require.Equal(t, 5, commands)
	for _, host := range []*root{a, b} {
		_, err := host.run("sh", "-c", take)
		require.Error(t, err)
		require.Contains(t, host.mustRun(t, "lockfs", "locks"), "first.lock")
	}
	require.Contains(t, a.mustRun(t, "lockfs"), "3 of 3 voters answer")
}
