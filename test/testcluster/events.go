package testcluster

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

// Event is an event of `lockfs events --json`.
type Event struct {
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
	By           *Caller   `json:"by"`
	Reason       string    `json:"reason"`
	Previous     *Event    `json:"previous_lock"`
	PreviousHash string    `json:"previous_lock_hash"`
}

// Caller is the caller of the change.
type Caller struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
	UID  int    `json:"uid"`
}

// ParseEvents parses the output of `lockfs events --json`.
func ParseEvents(t testing.TB, text string) []Event {
	t.Helper()
	var events []Event
	for line := range strings.Lines(text) {
		var e Event
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		events = append(events, e)
	}
	return events
}

// Events returns the node's events, all or those selected by flags.
func (n *Node) Events(t testing.TB, flags ...string) []Event {
	t.Helper()
	text, err := n.Lockfs(append([]string{"events", "--json"}, flags...)...)
	require.NoError(t, err)
	return ParseEvents(t, text)
}

// Story returns the kinds of a lock's events, without those that only concern its holder.
func Story(events []Event, lock string) (names []string) {
	last := Event{}
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

// LastEvent returns the last event of a kind about a lock.
func LastEvent(t testing.TB, events []Event, kind, lock string) Event {
	t.Helper()
	for _, e := range slices.Backward(events) {
		if e.Event == kind && e.Path == lock {
			return e
		}
	}
	require.Fail(t, "no such event", "%s of %s in %+v", kind, lock, events)
	return Event{}
}

// SHA256Of returns the form of a content in events.
func SHA256Of(content string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) }

// Refusals returns the number of refused removals so far.
func (n *Node) Refusals(t testing.TB) (count int) {
	t.Helper()
	metrics, err := n.Get("/metrics")
	require.NoError(t, err)
	found := regexp.MustCompile(`lockfs_events_total\{event="removal_refused"\} (\d+)`).FindStringSubmatch(metrics)
	if found != nil {
		_, err = fmt.Sscan(found[1], &count)
		require.NoError(t, err)
	}
	return count
}
