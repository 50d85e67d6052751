package test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// event is what `lockfs events --json` says of one.
type event struct {
	Number       uint64    `json:"number"`
	Event        string    `json:"event"`
	Timestamp    time.Time `json:"timestamp"`
	Path         string    `json:"lock_path"`
	Name         string    `json:"lock_name"`
	Token        uint64    `json:"token"`
	Format       string    `json:"format"`
	Holder       string    `json:"holder"`
	Host         string    `json:"host"`
	PID          int       `json:"pid"`
	By           *caller   `json:"by"`
	Reason       string    `json:"reason"`
	Previous     *event    `json:"previous_lock"`
	PreviousHash string    `json:"previous_lock_hash"`
}

type caller struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
	UID  int    `json:"uid"`
}

func parseEvents(t testing.TB, text string) []event {
	t.Helper()
	var events []event
	for line := range strings.Lines(text) {
		var e event
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		events = append(events, e)
	}
	return events
}

func (n *node) events(t testing.TB, flags ...string) []event {
	t.Helper()
	text, err := n.lockfs(append([]string{"events", "--json"}, flags...)...)
	require.NoError(t, err)
	return parseEvents(t, text)
}

// story is the events of a lock, without those that tell its holder only.
func story(events []event, lock string) (names []string) {
	last := event{}
	for _, e := range events {
		if e.Path != lock {
			continue
		}
		if e.Event != "lock_acquired" || last.Event != e.Event || last.Token != e.Token {
			names = append(names, e.Event)
		}
		last = e
	}
	return names
}

// lastEvent is the last of a kind about a lock.
func lastEvent(t testing.TB, events []event, kind, lock string) event {
	t.Helper()
	for _, e := range slices.Backward(events) {
		if e.Event == kind && e.Path == lock {
			return e
		}
	}
	require.Fail(t, "no such event", "%s of %s in %+v", kind, lock, events)
	return event{}
}

// sha256Of is how events name a content.
func sha256Of(content string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) }

// refusals is how many removals have been refused, ever.
func (n *node) refusals(t testing.TB) (count int) {
	t.Helper()
	metrics, err := n.get("/metrics")
	require.NoError(t, err)
	found := regexp.MustCompile(`lockfs_events_total\{event="removal_refused"\} (\d+)`).FindStringSubmatch(metrics)
	if found != nil {
		_, err = fmt.Sscan(found[1], &count)
		require.NoError(t, err)
	}
	return count
}
