// Package health defines whether a cluster works: it lists reachable voters, and whether a quorum confirms a
// read. The commands status, doctor, up and top, lockfs without a command, and the page show it. The /healthz
// of a server or mount is only the confirmed read.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// Timeout is the time limit for a confirmed read. Commands with this check end within two seconds.
const Timeout = 1700 * time.Millisecond

// Voter is a server with a vote.
type Voter struct {
	Name    string `json:"name"`
	Failure string `json:"failure,omitempty"` // reason for a missing reply; empty: it replies
}

// Health is one host's view of a cluster at one time.
type Health struct {
	Confirmed bool    `json:"confirmed"` // a quorum confirmed a read
	Reason    string  `json:"reason,omitempty"`
	Voters    int     `json:"voters"`
	Answering int     `json:"answering"`
	Silent    []Voter `json:"silent,omitempty"` // without a reply
}

// Of returns the health of a cluster with these voters. err is the error of a linearizable read; nil: a
// quorum confirmed it.
func Of(voters []Voter, err error) Health {
	h := Health{Confirmed: err == nil, Voters: len(voters)}
	if err != nil {
		h.Reason = Cause(err)
	}
	for _, voter := range voters {
		if voter.Failure != "" {
			h.Silent = append(h.Silent, voter)
		}
	}
	h.Answering = h.Voters - len(h.Silent)
	return h
}

// HasQuorum reports whether enough voters reply to this host for a quorum.
func (h Health) HasQuorum() bool { return h.missing() <= 0 }

// missing returns how many more voters a quorum needs.
func (h Health) missing() int { return h.Voters/2 + 1 - h.Answering }

// String returns one line: the state, its cause, and its effect on programs.
func (h Health) String() string {
	answers := fmt.Sprintf("%d of %d voters %s%s", h.Answering, h.Voters, verb(h.Answering), h.silent())
	switch {
	case h.Confirmed:
		return answers
	case h.Voters == 0:
		return "NO ANSWER: " + h.Reason
	case h.HasQuorum():
		return fmt.Sprintf("NO LEADER: %s, but none confirms a read (%s); calls fail until the servers have a leader", answers, h.Reason)
	case h.missing() == 1:
		return fmt.Sprintf("NO QUORUM: %s; calls fail until another server is back", answers)
	}
	return fmt.Sprintf("NO QUORUM: %s; calls fail until %d more servers are back", answers, h.missing())
}

func verb(answering int) string {
	if answering == 1 {
		return "answers"
	}
	return "answer"
}

// silent lists the voters without a reply, each with the cause.
func (h Health) silent() string {
	if len(h.Silent) == 0 {
		return ""
	}
	parts := make([]string, len(h.Silent))
	for i, voter := range h.Silent {
		parts[i] = voter.Name + ": " + voter.Failure
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// causes are network errors which a relay passes on as text.
var causes = []syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EPERM,
}

// Cause returns the root of a call's error in a few words, without addresses and wrapping layers.
func Cause(err error) string {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return "no answer in time"
	}
	text := err.Error()
	for _, cause := range causes {
		if errors.Is(err, cause) || strings.HasSuffix(text, ": "+cause.Error()) {
			return cause.Error()
		}
	}
	if strings.HasSuffix(text, context.DeadlineExceeded.Error()) || strings.HasSuffix(text, "i/o timeout") {
		return "no answer in time"
	}
	return text
}
