package testcluster

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// Status is the output of `lockfs status --json`. It has only the fields used by tests.
type Status struct {
	Leader string `json:"leader"`
	// ClusterVersion is the cluster's version.
	ClusterVersion uint32       `json:"cluster_version"`
	Nodes          []NodeStatus `json:"nodes"`
}

// NodeStatus is the part about one node.
type NodeStatus struct {
	Name         string `json:"name"`
	State        string `json:"state"`
	Mount        string `json:"mount"`
	Term         uint64 `json:"term"`
	CommitIndex  uint64 `json:"commit_index"`
	AppliedIndex uint64 `json:"applied_index"`
	StateIndex   uint64 `json:"state_index"`
	StateHash    string `json:"state_hash"`
	Error        string `json:"error"`

	OldestVersion uint32 `json:"oldest_version"`
	NewestVersion uint32 `json:"newest_version"`
}

// Status asks the node for the status of the cluster.
func (n *Node) Status() (Status, error) {
	var s Status
	text, err := n.Lockfs("status", "--json")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("%w in %s", err, text)
	}
	return s, nil
}

// RequireSameState waits until all nodes have applied the same entries, and requires equal states.
func (c *Cluster) RequireSameState(t testing.TB) {
	t.Helper()
	hosts.Eventually(t, "all nodes at one state index with one hash", func() (string, bool) {
		s, err := c.Nodes[0].Status()
		if err != nil {
			return err.Error(), false
		}
		same := len(s.Nodes) == len(c.Nodes)
		for _, n := range s.Nodes {
			if n.StateIndex != s.Nodes[0].StateIndex || n.StateHash == "" {
				same = false
			}
		}
		if same {
			for _, n := range s.Nodes {
				require.Equal(t, s.Nodes[0].StateHash, n.StateHash, "hash of %s and %s at index %d", s.Nodes[0].Name, n.Name, n.StateIndex)
			}
		}
		return fmt.Sprintf("%+v", s.Nodes), same
	})
}
