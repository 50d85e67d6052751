package testcluster

import (
	"encoding/json"
	"fmt"
	"testing"

	"lockfs/test/hosts"
)

// advisory is a lock of flock(2) or fcntl(2), or a request for one, in `lockfs locks --json`. It has only the
// fields used by tests.
type advisory struct {
	Kind  string `json:"kind"`
	Type  string `json:"type"`
	State string `json:"state"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
}

func (n *Node) advisories(lock string) ([]advisory, error) {
	text, err := n.Lockfs("locks", "--json", lock)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Advisory []advisory `json:"advisory_locks"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("%w in %s", err, text)
	}
	if len(list) == 0 {
		return nil, nil // data without a lock
	}
	return list[0].Advisory, nil
}

// AwaitAdvisory waits until these hosts, in this order, hold a lock or wait for it.
func (n *Node) AwaitAdvisory(t testing.TB, lock, state string, of ...string) {
	t.Helper()
	hosts.Eventually(t, fmt.Sprintf("%s %s by %v", lock, state, of), func() (string, bool) {
		list, err := n.advisories(lock)
		var seen []string
		for _, a := range list {
			if a.State == state {
				seen = append(seen, a.Host)
			}
		}
		return fmt.Sprint(list, err), err == nil && fmt.Sprint(seen) == fmt.Sprint(of)
	})
}
