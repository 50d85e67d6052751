package protocols

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// contend runs a command under a slot so many times. Each run tells in a log when it begins and ends; the first is killed with
// the one that has its slot.
const contend = `for round in 1 2 3; do
	until "$1" run --slots 3 --format pid "$2" -- bash -c '
		echo "enter $1" >> "$3"
		sleep 0.2
		echo "leave $1" >> "$3"
		[ "$2" != 1 ] || { kill -9 $PPID; while :; do sleep 0.01; done; }' bash "$4" "$round" "$3" || [ $? = 137 ]
	do :; done
done`

// together takes a slot and keeps it until all three have one.
const together = `"$1" run --slots 3 --format pid "$2" -- sh -ec '
	touch "$1.$2"
	while [ "$(ls "$1".* | wc -l)" -lt 3 ]; do sleep 0.01; done' sh "$3" "$4"`

// TestSlots has twelve programs on four hosts share three slots.
func TestSlots(t *testing.T) {
	t.Parallel()
	const contenders, slots = 12, 3
	c := testcluster.StartCluster(t, 3)
	g := c.AddGuest(t, "m")
	g.Start(t)
	on := append(c.Hosts(), g.Host)
	log := filepath.Join(c.Net.Dir(), "slots.log")
	var all []*hosts.Process
	for i := range slots {
		all = append(all, on[i].Start("sh", "-c", together, "sh", c.Program, c.Path("builds"), filepath.Join(c.Net.Dir(), "together"), fmt.Sprint(i)))
	}
	for _, p := range all {
		require.NoError(t, p.Wait(), p.Log())
	}
	all = nil
	for i := range contenders {
		all = append(all, on[i%len(on)].Start("bash", "-c", contend, "bash", c.Program, c.Path("builds"), log, fmt.Sprint(i)))
	}
	for _, p := range all {
		require.NoError(t, p.Wait(), p.Log())
	}
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	inside, most := 0, 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "enter ") {
			inside++
		} else {
			inside--
		}
		most = max(most, inside)
	}
	require.LessOrEqual(t, most, slots)
	require.Equal(t, contenders*3, strings.Count(string(text), "enter "))

	// Who waits is served in the order of coming, wherever.
	held := on[0].Start(c.Program, "run", "--slots", "1", "--format", "pid", c.Path("one"), "--", "bash", "-c", "echo ready; while :; do sleep 0.1; done")
	require.NoError(t, held.WaitOutput("ready"))
	var waiting []*hosts.Process
	var names []string
	served := filepath.Join(c.Net.Dir(), "served")
	for i := range 5 {
		h := on[(i*3+1)%len(on)]
		waiting = append(waiting, h.Start(c.Program, "run", "--slots", "1", "--format", "pid", c.Path("one"), "--",
			"sh", "-c", `echo "$1" >> "$2"`, "sh", fmt.Sprint(i), served))
		if i == 0 { // it looks at the slots
			c.Nodes[0].AwaitAdvisory(t, "one/.queue", "held", h.Name())
			continue
		}
		names = append(names, h.Name())
		c.Nodes[0].AwaitAdvisory(t, "one/.queue", "waiting", names...)
	}
	held.Kill()
	for _, p := range waiting {
		require.NoError(t, p.Wait(), p.Log())
	}
	text, err = os.ReadFile(served)
	require.NoError(t, err)
	require.Equal(t, "0\n1\n2\n3\n4\n", string(text))
}

// takeTurns takes each turn that it can have, and tells in a log of which period it was.
const takeTurns = `while [ ! -e "$3.stop" ]; do
	"$1" run --once-per "$4" "$2" -- bash -c 'sed -n "s/^from *//p" "$1" >> "$2"' bash "$2" "$3"
	sleep 0.1
done`

// TestOncePer has hosts whose clocks differ by minutes do something once in each period, and kills the leader as one begins.
func TestOncePer(t *testing.T) {
	t.Parallel()
	const period = 8 * time.Second
	c := testcluster.NewCluster(t)
	for _, offset := range []time.Duration{0, 3 * time.Minute, -2 * time.Minute} {
		n := c.Add(t)
		n.SetClock(t, offset)
		n.Start(t)
	}
	g := c.AddGuest(t, "m")
	g.SetClock(t, 7*time.Minute)
	g.Start(t)
	log := filepath.Join(c.Net.Dir(), "turns")
	var all []*hosts.Process
	for _, h := range append(c.Hosts(), g.Host) {
		all = append(all, h.Start("bash", "-c", takeTurns, "bash", c.Program, c.Path("nightly"), log, period.String()))
	}
	turns := func() []string {
		text, err := os.ReadFile(log)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		return strings.Fields(string(text))
	}
	await := func(count int) {
		t.Helper()
		hosts.Eventually(t, fmt.Sprintf("%d turns", count), func() (string, bool) {
			return fmt.Sprint(turns()), len(turns()) >= count
		})
	}
	await(2)
	before := len(turns())
	await(before + 1)
	// Were it killed while the run on its own host has the lock, that would stay until it is stale, in an hour.
	leader := c.Leader()
	other := c.Others(leader)[0].Host
	hosts.Eventually(t, "the turn is given back", func() (string, bool) {
		said, err := other.Run("ls", c.Mount)
		return said, err == nil && !strings.Contains(said, "nightly.lock")
	})
	leader.Kill()
	after := len(turns())
	await(after + 3)
	require.NoError(t, os.WriteFile(log+".stop", nil, 0o600))
	for _, p := range all {
		_ = p.Wait() // that on the killed one's host has failed
	}
	var last time.Time
	for i, text := range turns() {
		from, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		require.True(t, from.After(last), "%v: one in each period", turns())
		if i > 0 && i != after {
			require.Equal(t, period, from.Sub(last), "%v: each period has one", turns())
		}
		last = from
	}
}
