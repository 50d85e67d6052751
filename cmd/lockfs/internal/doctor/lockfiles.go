package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockfs/cmd/lockfs/internal/cli"
)

// mostLockFiles is the maximum number of listed files.
const mostLockFiles = 5

// askFilesRemoved counts the events of the last day by path, from `lockfs events --json`.
func askFilesRemoved(ctx context.Context, flags []string) (map[string]int, error) {
	done := cli.RunSelf(ctx, append([]string{"events", "--json", "--since", "24h"}, flags...)...)
	if done.Err != nil {
		return nil, errors.New(strings.TrimPrefix(string(bytes.TrimSpace(done.Stderr)), "lockfs: "))
	}
	removed := make(map[string]int)
	for line := range bytes.Lines(done.Stdout) {
		var event struct {
			Event string `json:"event"`
			Path  string `json:"lock_path"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("lockfs events --json: %w", err)
		}
		if event.Event == "locked_file_removed" {
			removed[event.Path]++
		}
	}
	return removed, nil
}

// lookAtLockFiles reports no unreachable servers, which another check does.
func lookAtLockFiles(ctx context.Context, h *host) []Finding {
	if _, err := h.cluster(ctx); err != nil || h.hasNoQuorum(ctx) {
		return nil
	}
	removed, err := h.filesRemoved(ctx)
	if err != nil {
		return one(unknown("", "the events are unknown: %v", err))
	}
	var found []Finding
	for _, path := range slices.Sorted(maps.Keys(removed)) {
		if len(found) == mostLockFiles {
			found = append(found, warning("", "%d more files were removed while other programs used their locks", len(removed)-mostLockFiles))
			break
		}
		found = append(found, warning("keep the file, or have each program check after it got the lock that the name is still that file (`lockfs help locks`)",
			"%s was removed %d times within a day while other programs held or awaited its flock or fcntl lock: two programs may hold it", cli.Word(path), removed[path]))
	}
	if found == nil {
		return one(ok("no file was removed while other programs used its flock or fcntl lock"))
	}
	return found
}
