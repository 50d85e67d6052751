//go:build soak

package soakrecord

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockfs/test/hostileuser"
	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// Limits of a witness's call: while faults are injected, a host may be frozen and then cut off, one after the other. Without faults no call
// waits for a quorum.
const (
	longestUnderFaults = 30 * time.Second
	longestInCalm      = opTimeout
)

// ways are those in which a user is hostile, one in each piece.
func ways(c *testcluster.Cluster) [][]string {
	return [][]string{
		{"waits", "300"}, {"ranges", "200", "100", "4"}, {"opens", "200", c.Path(".lockfs/locks.jsonl")}, {"names", "4"},
	}
}

// hostility is a user who is hostile while a piece is played, and the witnesses of that.
type hostility struct {
	dir       string
	way       []string
	user      *hostileuser.User
	witnesses *hostileuser.Witnesses
}

// startHostility starts the user on one host, by the seed, and a witness there and on the next host.
func startHostility(t *testing.T, c *testcluster.Cluster, on []*hosts.Host, seed uint64) *hostility {
	t.Helper()
	all := ways(c)
	h := &hostility{dir: hostileuser.Dir(t, c, on[0], fmt.Sprintf("users%d", seed)), way: all[seed%uint64(len(all))]}
	at := int(seed/uint64(len(all))) % len(on)
	h.user = hostileuser.Start(t, on[at], hostileuser.HostileUID, h.dir, h.way[0], append(h.way[1:], "again")...)
	h.witnesses = hostileuser.StartWitnesses(t, h.dir, on[at], on[(at+1)%len(on)])
	return h
}

// finish is called when all faults are over and the rest of the load goes on. It judges the longest call so far, and then what the witnesses
// see without faults. It returns the longest call of each time.
func (h *hostility) finish(t *testing.T, root *hosts.Host) (underFaults, inCalm time.Duration) {
	t.Helper()
	seen := h.witnesses.Seen()
	hostileuser.Judge{Longest: longestUnderFaults, MayFail: true}.Require(t, seen)
	underFaults = longest(seen)
	h.witnesses.Observe(30) // descriptors of a lost session are closed then
	seen = h.witnesses.Observe(100)
	t.Logf("beside a user who %s: %v", strings.Join(h.way, " "), seen)
	hostileuser.Judge{Longest: longestInCalm}.Require(t, seen)
	h.witnesses.End()
	h.user.EndAndForget(t, root)
	root.MustRun(t, "rm", "-rf", h.dir)
	return underFaults, longest(seen)
}

func longest(all []hostileuser.Seen) (longest time.Duration) {
	for _, seen := range all {
		longest = max(longest, seen.Longest)
	}
	return longest
}
