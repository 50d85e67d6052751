package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

const creatorThreads = 30 // of each creator, each with one call under way

var unacknowledged = testcluster.Rounds(120, 200) // creations that nobody is told of, at least

// An interruption ends the calls of a creator without a result. It begins when all of them wait for a
// majority that does not answer the leader.
type interruption struct {
	name string
	on   func(*creation) *hosts.Host // where the creator is
	do   func(*creation, testing.TB)
}

var interruptions = []interruption{
	{"client on a guest killed", onGuest, (*creation).killClient},
	{"client at the leader killed", onLeader, (*creation).killClient},
	{"timed out on a guest", onGuest, (*creation).timeOut},
	{"replies to a guest lost", onGuest, (*creation).loseReplies},
	{"cut off with the leader", onLeader, (*creation).cutLeader},
	{"guest's daemon killed", onGuest, (*creation).killGuest},
	{"leader killed", onLeader, func(c *creation, t testing.TB) { c.killNode(t, c.leader) }},
	{"follower killed", onFollower, func(c *creation, t testing.TB) { c.killNode(t, c.follower) }},
}

// interruptionsElsewhere are some of them where the same happens to others, for long runs.
var interruptionsElsewhere = []interruption{
	{"client at a follower killed", onFollower, (*creation).killClient},
	{"timed out at the leader", onLeader, (*creation).timeOut},
}

// TestUnacknowledgedCreations interrupts creations of all kinds in all ways. Afterwards there is every name
// that somebody was told of, and no other.
//
// No call can have returned just before its client or its daemon is killed: when that happens all wait
// for a commit that cannot come. TestKilledWhileAnswering has the daemon die in between.
func TestUnacknowledgedCreations(t *testing.T) {
	t.Parallel()
	timeout := "--op-timeout=2s"
	c := testcluster.StartCluster(t, 3, timeout)
	g := c.AddGuest(t, "m", timeout)
	g.Start(t)
	var creations []*creation
	unknown := 0
	ways := interruptions
	if testcluster.Long() {
		ways = slices.Concat(ways, interruptionsElsewhere)
	}
	for round := 0; round < len(ways) || unknown < unacknowledged; round++ {
		how := ways[round%len(ways)]
		began := time.Now()
		creation := &creation{c: c, guest: g, name: fmt.Sprint(round)}
		creation.interrupt(t, how)
		creations = append(creations, creation)
		ended := creation.unknown(t)
		unknown += ended
		t.Logf("%s: %d calls without a result (%.1fs)", how.name, ended, time.Since(began).Seconds())
	}
	expected := make(map[string]bool)
	for _, creation := range creations {
		creation.addMade(t, expected)
	}
	t.Logf("%d names, %d calls without a result", len(expected), unknown)
	for _, h := range []*hosts.Host{c.Nodes[0].Host, c.Nodes[1].Host, c.Nodes[2].Host, g.Host} {
		hosts.Eventually(t, "on "+h.Name()+" there are the names that somebody was told of", func() (string, bool) {
			present, err := presentNames(h, c.Mount)
			if err != nil { // calls fail at once until a mount that was cut off has heard of the cluster again
				return err.Error(), false
			}
			wrong := difference(expected, present)
			for i, line := range wrong {
				wrong[i] = line + ": " + said(t, creations, line)
			}
			return strings.Join(wrong, "\n"), len(wrong) == 0
		})
	}
	c.RequireSameState(t)
}

// A creation is one creator and its interruption.
type creation struct {
	c        *testcluster.Cluster
	guest    *testcluster.Guest
	name     string            // of its directory
	leader   *testcluster.Node // as it begins
	follower *testcluster.Node
	creator  *hosts.Process
	release  func() // ends that no commit can come
}

func onGuest(c *creation) *hosts.Host    { return c.guest.Host }
func onLeader(c *creation) *hosts.Host   { return c.leader.Host }
func onFollower(c *creation) *hosts.Host { return c.follower.Host }

func (c *creation) log() string { return filepath.Join(c.c.Net.Dir(), "creator-"+c.name) }

func (c *creation) interrupt(t testing.TB, how interruption) {
	t.Helper()
	c.leader = c.c.Leader()
	c.follower = c.c.Others(c.leader)[rand.IntN(2)]
	host := how.on(c)
	// With so little time for a call, one that meets the election which the last interruption made can fail.
	hosts.Eventually(t, "a call succeeds in its time", func() (string, bool) {
		_, err := host.Run("sh", "-c", fmt.Sprintf("mkdir -p %s && cd %[1]s && mkdir -p $(seq 0 %d)", c.c.Path(c.name), creatorThreads-1))
		return fmt.Sprint(err), err == nil
	})
	script := testcluster.ClientPath(t, "creator.py")
	c.creator = host.Start("python3", script, c.c.Path(c.name), c.log())
	hosts.Eventually(t, "all threads are at work", func() (string, bool) {
		made := c.words(t, "made")
		return fmt.Sprint(len(made)), len(made) >= 4*creatorThreads
	})
	moment()
	c.release = holdCommits(t, c.leader)
	c.awaitWaiting(t)
	how.do(c, t)
	select {
	case <-c.creator.Ended():
	case <-time.After(hosts.Patience):
		t.Fatalf("%s: the creator does not end", how.name)
	}
}

// moment lets some time pass.
func moment() { time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond)))) }

// awaitWaiting waits until each thread is in a call that does not return.
func (c *creation) awaitWaiting(t testing.TB) {
	t.Helper()
	const looks = 5
	before, same := -1, 0
	hosts.Eventually(t, "all threads wait", func() (string, bool) {
		begun, ended := len(c.words(t, "calling")), len(c.words(t, "made"))
		if same++; begun != before {
			before, same = begun, 0
		}
		return fmt.Sprintf("%d begun, %d ended", begun, ended), same >= looks && begun == ended+creatorThreads
	})
}

func (c *creation) killClient(testing.TB) {
	c.creator.Signal(9)
	moment()
	c.release()
}

// timeOut leaves nobody to be the leader instead.
func (c *creation) timeOut(t testing.TB) {
	followers := c.c.Others(c.leader)
	for _, n := range followers {
		n.Server.Freeze()
	}
	c.release()
	c.awaitFailures(t)
	for _, n := range followers {
		n.Server.Thaw()
	}
}

// loseReplies lets the creations be done. The rest of the cut is in case there is another leader by now.
func (c *creation) loseReplies(t testing.TB) {
	c.guest.Host.CutFrom(c.leader.Host)
	c.release()
	c.guest.Host.Cut()
	c.awaitFailures(t)
	c.guest.Host.Heal()
}

func (c *creation) cutLeader(t testing.TB) {
	c.leader.Host.Cut()
	c.release()
	c.awaitFailures(t)
	c.leader.Host.Heal()
}

func (c *creation) killGuest(t testing.TB) {
	c.guest.Kill()
	moment()
	c.release()
	c.guest.Start(t)
}

func (c *creation) killNode(t testing.TB, n *testcluster.Node) {
	n.Kill()
	moment()
	c.release()
	n.Start(t)
}

func (c *creation) awaitFailures(t testing.TB) {
	t.Helper()
	hosts.Eventually(t, "all calls have failed", func() (string, bool) {
		failed := c.words(t, "failed")
		return fmt.Sprint(failed), len(failed) == creatorThreads
	})
}

// words is what the lines of the log say that begin with a word.
func (c *creation) words(t testing.TB, first string) [][]string {
	t.Helper()
	text, err := os.ReadFile(c.log())
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	var found [][]string
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); words[0] == first {
			found = append(found, words[1:])
		}
	}
	return found
}

// unknown counts the calls of which nobody was told that they were done.
func (c *creation) unknown(t testing.TB) int {
	t.Helper()
	for _, words := range c.words(t, "failed") {
		require.Contains(t, []string{"ETIMEDOUT", "ECONNABORTED", "ENOTCONN"}, words[0])
	}
	return len(c.words(t, "calling")) - len(c.words(t, "made"))
}

// addMade adds the names that somebody was told of, with the directories that they are in.
func (c *creation) addMade(t testing.TB, names map[string]bool) {
	t.Helper()
	names[c.name] = true
	for thread := range creatorThreads {
		names[filepath.Join(c.name, fmt.Sprint(thread))] = true
	}
	for _, words := range c.words(t, "made") {
		names[filepath.Join(c.name, words[0])] = true
		for _, gone := range words[1:] {
			delete(names, filepath.Join(c.name, gone))
		}
	}
}

// presentNames is all names below a directory, relative to it.
func presentNames(h *hosts.Host, dir string) (map[string]bool, error) {
	found, err := h.Run("sh", "-c", "cd "+dir+" && find . -mindepth 1")
	names := make(map[string]bool)
	for line := range strings.Lines(found) {
		names[strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "./")] = true
	}
	return names, err
}

func difference(expected, present map[string]bool) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if !present[name] {
			wrong = append(wrong, name+" is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if !expected[name] {
			wrong = append(wrong, name+" was made, and nobody was told")
		}
	}
	return wrong
}

// said is what the log of a creator says of a name.
func said(t testing.TB, creations []*creation, line string) string {
	t.Helper()
	round, rest, _ := strings.Cut(line, "/")
	name, _, _ := strings.Cut(rest, " ")
	for _, c := range creations {
		if c.name != round {
			continue
		}
		var found []string
		for _, first := range []string{"calling", "made", "failed"} {
			for _, words := range c.words(t, first) {
				if slices.Contains(words, name) {
					found = append(found, first+" "+strings.Join(words, " "))
				}
			}
		}
		return strings.Join(found, ", ")
	}
	return ""
}
