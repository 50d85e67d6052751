package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"lockfs/cmd/lockfs/internal/cli"
)

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
	if _, err := h.cluster(ctx); err != nil {
		return one(unknown("", "no server answers"))
	}
	if h.hasNoQuorum(ctx) {
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
