package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneLineStatesCauseAndEffect(t *testing.T) {
	refused := Voter{Name: "a", Failure: "connection refused"}
	b, c := Voter{Name: "b"}, Voter{Name: "c"}
	cut := Voter{Name: "c", Failure: "no answer in time"}
	unconfirmed := fmt.Errorf("read: %w", context.DeadlineExceeded)
	tests := map[string]struct {
		voters []Voter
		err    error
		want   string
	}{
		"all well":       {[]Voter{{Name: "a"}, b, c}, nil, "3 of 3 voters answer"},
		"one of three":   {[]Voter{refused, b, c}, nil, "2 of 3 voters answer (a: connection refused)"},
		"no quorum of 2": {[]Voter{refused, b}, unconfirmed, "NO QUORUM: 1 of 2 voters answers (a: connection refused); calls fail until another server is back"},
		"no quorum of 5": {
			[]Voter{refused, b, cut, cut, cut}, unconfirmed,
			"NO QUORUM: 1 of 5 voters answers (a: connection refused, c: no answer in time, c: no answer in time, c: no answer in time); " +
				"calls fail until 2 more servers are back",
		},
		"an election": {
			[]Voter{{Name: "a"}, b, cut}, unconfirmed,
			"NO LEADER: 2 of 3 voters answer (c: no answer in time), but none confirms a read (no answer in time); calls fail until the servers have a leader",
		},
		"nothing answers": {nil, errors.New("no daemon runs here"), "NO ANSWER: no daemon runs here"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Of(test.voters, test.err).String())
		})
	}
}

func TestCauseIsTheRootOfAnError(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	require.Equal(t, "connection refused", Cause(fmt.Errorf("ask 10.0.0.1:7420: %w", dial)))
	require.Equal(t, "connection refused", Cause(errors.New("unix:/run/lockfs/a.sock: dial tcp 10.0.0.1:7420: connect: connection refused")))
	require.Equal(t, "no answer in time", Cause(errors.New("x: context deadline exceeded")))
	require.Equal(t, "no answer in time", Cause(&net.OpError{Op: "dial", Err: syscall.ETIMEDOUT}))
	require.Equal(t, "tls: bad certificate", Cause(errors.New("tls: bad certificate")))
}
