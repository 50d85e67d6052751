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

// alarm is what is of use here of what `lockfs alarm list --json` prints of each.
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

// lookAtAlarms asks only where servers answer: that they do not is said by another check.
func lookAtAlarms(ctx context.Context, h *host) []Finding {
	if _, err := h.cluster(ctx); err != nil {
		return one(unknown("", "no server answers"))
	}
	if h.hasNoQuorum(ctx) {
		return nil
	}
	alarms, err := h.alarms(ctx)
	if err != nil {
		return one(unknown("", "the alarms are not known: %v", err))
	}
	var found []Finding
	for _, a := range alarms {
		found = append(found, failed(fmt.Sprintf("once it is mended: lockfs alarm clear %d (`lockfs help failures`)", a.Number), "%s: %s", a.Kind, cli.Text(a.Text)))
	}
	if found == nil {
		return one(ok("the cluster has no alarms"))
	}
	return found
}
