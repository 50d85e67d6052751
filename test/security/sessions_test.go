package security

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hostileuser"
	"lockfs/test/testcluster"
)

// TestOneHostLeavesSessionsForOthers: root of a client opens as many sessions as it gets. The host's own mount goes on, and another host mounts.
func TestOneHostLeavesSessionsForOthers(t *testing.T) {
	t.Parallel()
	perHost, attempts := testcluster.Rounds(20, 256), testcluster.Rounds(200, 10_000)
	c := testcluster.StartSecureCluster(t, 1, "--max-sessions-per-host", strconv.Itoa(perHost), "--max-sessions", strconv.Itoa(perHost+10))
	n := c.Nodes[0]
	m := c.AddGuest(t, "m")
	m.Start(t)
	witnesses := hostileuser.StartWitnesses(t, hostileuser.Dir(t, c, m.Host, "users"), m.Host, n.Host)
	judge := hostileuser.Judge{Longest: 15 * time.Second}
	bootID, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)

	root := asIn(t, m.Host, c.IdentityDir("m"))
	witnesses.Forget()
	answers := map[uint64]int{} // by code
	for session := range uint64(attempts) {
		open := message{}.bytes(opOpenSession, message{}.text(1, "m").text(2, strings.TrimSpace(string(bootID))))
		said, err := root.call(n.Addr(), protocolRPC, methodExecute,
			message{}.bytes(executeCommand, message{}.number(commandSession, 1000+session).bytes(commandOp, open)))
		require.NoError(t, err)
		answers[said.result(executeResult).numberOf(1)]++
	}
	open := n.AwaitSession(t, "m", "sessions of the host", func([]testcluster.Session) bool { return true })
	t.Logf("%d sessions are open after %d attempts, by code of the answer: %v", len(open), attempts, answers)
	judge.Require(t, witnesses.Seen())
	require.LessOrEqual(t, len(open), perHost)
	require.NotZero(t, answers[codeTooMany]+answers[codeBusy], "beyond the limits of sessions, and of openings in a time")

	elsewhere := c.AddGuest(t, "elsewhere")
	elsewhere.Start(t)
	elsewhere.Host.MustRun(t, "mkdir", c.Path("users", "deploy.lock"))
	judge.Require(t, witnesses.Observe(100))
}
