package testcluster

import (
	"encoding/json"
	"fmt"
	"testing"

	"lockfs/test/hosts"
)

// Session is a session in `lockfs session list --json`. It has only the fields used by tests.
type Session struct {
	ID          string  `json:"id"`
	Host        string  `json:"host"`
	Silent      float64 `json:"silent_seconds"`
	ClockOffset float64 `json:"clock_offset_seconds"`
}

func (n *Node) sessions() ([]Session, error) {
	text, err := n.Lockfs("session", "list", "--json")
	if err != nil {
		return nil, err
	}
	var list []Session
	return list, json.Unmarshal([]byte(text), &list)
}

// AwaitSession waits until the sessions of a host satisfy want.
func (n *Node) AwaitSession(t testing.TB, host, what string, want func([]Session) bool) (of []Session) {
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

// NoSession is a condition for AwaitSession.
func NoSession(s []Session) bool { return len(s) == 0 }

// OneSession is a condition for AwaitSession.
func OneSession(s []Session) bool { return len(s) == 1 }
