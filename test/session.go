package test

import (
	"encoding/json"
	"fmt"
	"testing"

	"lockfs/test/hosts"
)

// session is what `lockfs session list --json` says of one. Only what tests use is here.
type session struct {
	ID          string  `json:"id"`
	Host        string  `json:"host"`
	Silent      float64 `json:"silent_seconds"`
	ClockOffset float64 `json:"clock_offset_seconds"`
}

func (n *node) sessions() ([]session, error) {
	text, err := n.lockfs("session", "list", "--json")
	if err != nil {
		return nil, err
	}
	var list []session
	return list, json.Unmarshal([]byte(text), &list)
}

// awaitSession waits until the sessions of a host satisfy want.
func (n *node) awaitSession(t testing.TB, host, what string, want func([]session) bool) (of []session) {
	t.Helper()
	hosts.Eventually(t, what, func() (string, bool) {
		all, err := n.sessions()
		of = nil
		for _, s := range all {
			if s.Host == host {
				of = append(of, s)
			}
		}
		return fmt.Sprintf("%+v, error %v", all, err), err == nil && want(of)
	})
	return of
}

func none(s []session) bool { return len(s) == 0 }

func one(s []session) bool { return len(s) == 1 }
