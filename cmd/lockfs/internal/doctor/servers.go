package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
)

// askStatus runs lockfs status with the given flags, so there is one place to select the target and the
// identity.
func askStatus(ctx context.Context, flags []string) (*clusterStatus, error) {
	asked := time.Now()
	done := cli.RunSelf(ctx, append([]string{"status", "--json"}, flags...)...)
	if done.Err != nil && len(done.Stdout) == 0 {
		return nil, errors.New(strings.TrimPrefix(string(bytes.TrimSpace(done.Stderr)), "lockfs: "))
	}
	status := &clusterStatus{asked: asked, came: time.Now()}
	if err := json.Unmarshal(done.Stdout, status); err != nil {
		return nil, fmt.Errorf("lockfs status --json: %w", err)
	}
	return status, nil
}

func lookAtServers(ctx context.Context, h *host) []Finding {
	status, err := h.cluster(ctx)
	if err != nil {
		const advice = "check that `lockfs server` runs there, and a quorum of servers"
		if h.asked || h.hasDaemon() {
			return one(failed(advice, "no server answers: %v", err))
		}
		return one(unknown("if servers should answer, name them with --servers", "no server answers: %v", err))
	}
	var found []Finding
	if !status.Health.Confirmed {
		found = append(found, failed("start the servers that do not answer, or mend the links to them; if they are lost for good: `lockfs help backup`, \"A lost majority\"",
			"%s", cli.Text(status.Health.String())))
	}
	versions, voters, silent := map[string][]string{}, 0, 0
	for _, node := range status.Nodes {
		if node.Error != "" {
			silent++
			found = append(found, warning("check that it runs, and that this host can reach its port", "server %s (%s) is unreachable: %s", node.Name, node.Address, node.Error))
			continue
		}
		versions[node.Version] = append(versions[node.Version], node.Name)
		if node.Voter {
			voters++
		}
		found = append(found, ok("server %s (%s) answers: %s, version %s", node.Name, node.Address, node.State, node.Version))
	}
	if status.SeveralClusters != "" {
		found = append(found, failed("see `lockfs help members`, \"Two clusters\"", "%s", status.SeveralClusters))
	}
	if len(versions) > 1 {
		found = append(found, warning("upgrade all to the newest version, one server after the other", "servers have different versions: %s", describeVersions(versions)))
	}
	if silent == 0 && voters > 0 && voters%2 == 0 {
		found = append(found, warning("use an odd number of voters", "%d voters tolerate no more failures than %d", voters, voters-1))
	}
	return found
}

func describeVersions(versions map[string][]string) string {
	var parts []string
	for version, names := range versions {
		parts = append(parts, fmt.Sprintf("%s (%s)", version, strings.Join(names, ", ")))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// alarm has the fields used here of an element of `lockfs alarm list --json`.
type alarm struct {
	Number uint64 `json:"number"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
}

func askAlarms(ctx context.Context, flags []string) (alarms []alarm, err error) {
	done := cli.RunSelf(ctx, append([]string{"alarm", "list", "--json"}, flags...)...)
	if done.Err != nil {
		return nil, errors.New(strings.TrimPrefix(string(bytes.TrimSpace(done.Stderr)), "lockfs: "))
	}
	if err := json.Unmarshal(done.Stdout, &alarms); err != nil {
		return nil, fmt.Errorf("lockfs alarm list --json: %w", err)
	}
	return alarms, nil
}

// lookAtAlarms reports no unreachable servers, which another check does.
func lookAtAlarms(ctx context.Context, h *host) []Finding {
	if _, err := h.cluster(ctx); err != nil || h.hasNoQuorum(ctx) {
		return nil
	}
	alarms, err := h.alarms(ctx)
	if err != nil {
		return one(unknown("", "the alarms are unknown: %v", err))
	}
	var found []Finding
	for _, a := range alarms {
		found = append(found, failed(fmt.Sprintf("after the repair: lockfs alarm clear %d (`lockfs help failures`)", a.Number), "%s: %s", a.Kind, cli.Text(a.Text)))
	}
	if found == nil {
		return one(ok("the cluster has no alarms"))
	}
	return found
}
