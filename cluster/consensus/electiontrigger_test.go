package consensus

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestOnlyALeaderThatHasEndedIsReplacedEarly(t *testing.T) {
	refused := fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	for _, row := range []struct {
		what   string
		leader raft.ServerAddress
		silent time.Duration
		late   time.Duration
		dial   error
		stands bool
	}{
		{"it has ended", "a:1", minSilence, 0, refused, true},
		{"it was heard", "a:1", minSilence - 1, 0, refused, false},
		{"its process is stopped, or its disk hangs", "a:1", time.Minute, 0, nil, false},
		{"its host is cut off", "a:1", time.Minute, 0, errors.New("i/o timeout"), false},
		{"there is none", "", time.Minute, 0, refused, false},
		{"this process was stopped itself", "a:1", time.Minute, electionSpread + 1, refused, false},
	} {
		t.Run(row.what, func(t *testing.T) {
			stands := false
			again := electionTrigger{
				heard: func() (raft.ServerAddress, time.Duration) { return row.leader, row.silent },
				dial:  func(raft.ServerAddress) error { return row.dial },
				stand: func() { stands = true },
			}.look(row.late)
			require.Equal(t, row.stands, stands)
			require.Positive(t, again)
			require.LessOrEqual(t, again, minSilence+electionSpread)
		})
	}
}

// TestALeaderIsHeardWhileItIsLookedFor is about one that answers a connection late, and others meanwhile.
func TestALeaderIsHeardWhileItIsLookedFor(t *testing.T) {
	for _, after := range []struct {
		leader raft.ServerAddress
		silent time.Duration
	}{{"a:1", 0}, {"b:1", time.Minute}, {"", 0}} {
		heard := after
		heard.leader, heard.silent = "a:1", time.Minute
		electionTrigger{
			heard: func() (raft.ServerAddress, time.Duration) { return heard.leader, heard.silent },
			dial: func(raft.ServerAddress) error {
				heard = after
				return syscall.ECONNREFUSED
			},
			stand: func() { t.Errorf("%+v: it stands for election", after) },
		}.look(0)
	}
}
