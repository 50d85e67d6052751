package primitives

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// racers are for one name, in a directory where only its owner may remove it. A thief takes it or removes it, whosever it is,
// until he is told to stop, and tells which errors he got. An owner takes it for a moment, so many times, and tells how often
// it had gone.
const racers = `
def take():
    os.close(os.open('lock', os.O_CREAT | os.O_EXCL))

def remove():
    os.unlink('lock')

def thief(call):
    os.setuid(65534)
    errors = set()
    while not os.path.exists('stop'):
        for _ in range(10):
            try:
                call()
            except OSError as error:
                errors.add(NAMES[error.errno])
    return ' '.join(sorted(errors))

def owner(times):
    gone = 0
    while times:
        try:
            lock = os.open('lock', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            continue
        times -= 1
        try:
            for _ in range(3):
                gone += not os.path.samestat(os.fstat(lock), os.stat('lock'))
            os.unlink('lock')
        except OSError:
            gone += 1
        os.close(lock)
    return gone
`

// TestTheStickyBitHoldsAcrossHosts has nobody race with root for one name, on several hosts.
func TestTheStickyBitHoldsAcrossHosts(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	dir := c.Path("sticky")
	c.Nodes[0].Host.MustRun(t, "mkdir", "-m", "1777", dir)
	racer := func(n *testcluster.Node) testcluster.Actor {
		a := testcluster.StartActor(t, n.Host, dir)
		a.Must(fmt.Sprintf("exec(%q)", racers))
		return a
	}
	var thieves []func() string
	for _, n := range c.Nodes[:2] {
		for _, call := range []string{"take", "remove"} {
			thieves = append(thieves, racer(n).Starts(fmt.Sprintf(`say(thief, %s)`, call)))
		}
	}
	racer(c.Nodes[2]).Require(`say(owner, 60)`, "0")
	c.Nodes[0].Host.MustRun(t, "touch", c.Path("sticky", "stop"))
	for _, stopped := range thieves {
		for _, failed := range strings.Fields(stopped()) {
			require.Contains(t, []string{"EEXIST", "ENOENT", "EPERM"}, failed)
		}
	}
}
