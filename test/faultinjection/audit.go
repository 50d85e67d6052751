package faultinjection

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// VerifyAudit requires that `lockfs audit verify` finds no fault in the logs of all servers and that they
// have the same events. It returns their number. The site must be settled. Afterwards it renames each log
// like a rotation, in place of the previous one: so each call verifies the events since the call before the
// last, and disks do not fill up.
func (s *Site) VerifyAudit(t testing.TB) (events int) {
	t.Helper()
	at := filepath.Join(s.Cluster.Net.Dir(), "audit")
	var logs []string
	for _, g := range s.servers {
		logs = append(logs, filepath.Join(at, g.name))
	}
	hosts.Eventually(t, "audit logs that are sound, and have the same events", func() (string, bool) {
		for i, g := range s.servers {
			g.host.MustRun(t, "sh", "-c", `rm -rf "$1" && mkdir -p "$1" && cp "$0"/audit.jsonl* "$1"`, g.node.Data, logs[i])
		}
		said, err := s.servers[0].host.Run(s.Cluster.Program, append([]string{"audit", "verify", "--json"}, logs...)...)
		var found struct {
			Proven bool `json:"proven"`
			Logs   []struct {
				Last uint64 `json:"last"`
			} `json:"logs"`
		}
		if json.Unmarshal([]byte(said), &found) != nil || !found.Proven {
			return fmt.Sprintf("%s %v", said, err), false
		}
		for _, log := range found.Logs {
			if log.Last != found.Logs[0].Last {
				return said, false
			}
			events = int(log.Last)
		}
		return said, len(found.Logs) == len(s.servers)
	})
	require.NoError(t, os.RemoveAll(at))
	for _, g := range s.servers {
		g.host.MustRun(t, "sh", "-c", `cd "$0" && mv audit.jsonl audit.jsonl.1`, g.node.Data)
	}
	return events
}
