package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestParseSince(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for text, want := range map[string]since{
		"":                          {},
		"0":                         {number: 1},
		"17":                        {number: 17},
		"10m":                       {ago: 10 * time.Minute},
		"1h30m":                     {ago: 90 * time.Minute},
		"2026-01-02T15:04:05Z":      {time: at},
		"2026-01-02T16:04:05+01:00": {time: at},
	} {
		got, err := parseSince(text)
		require.NoError(t, err, text)
		require.True(t, want.time.Equal(got.time), text)
		got.time = want.time
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"-1", "-10m", "0s", "10 m", "yesterday", "2026-01-02", "99999999999999999999"} {
		_, err := parseSince(text)
		require.ErrorContains(t, err, "--since "+fmt.Sprintf("%q", text))
	}
}

// trail answers queries for events from those that it keeps, which happened a second apart.
type trail struct {
	t        *testing.T
	from, to uint64
	fail     []error // for the next queries
	waited   func()  // instead of waiting when there is nothing new
}

func (tr *trail) ask(_ context.Context, query *storepb.Query) (*storepb.Result, error) {
	q := query.GetListEvents()
	require.NotNil(tr.t, q)
	if len(tr.fail) > 0 {
		err := tr.fail[0]
		tr.fail = tr.fail[1:]
		return nil, err
	}
	if q.GetAfter() >= tr.to && q.GetWait() {
		tr.waited()
	}
	result := &storepb.Result{LastEvent: tr.to}
	for n := max(q.GetAfter()+1, tr.from); n <= tr.to && uint32(len(result.Events)) < q.GetLimit(); n++ {
		result.Events = append(result.Events, &storepb.Event{Number: n, Time: int64(n) * int64(time.Second)})
	}
	return result, nil
}

// collect makes a reader keep the numbers that it reads, and what it says.
func collect(reader *eventReader) (numbers *[]uint64, notices *[]string, handle func([]*storepb.Event) error) {
	numbers, notices = new([]uint64), new([]string)
	reader.notice = func(format string, args ...any) { *notices = append(*notices, fmt.Sprintf(format, args...)) }
	return numbers, notices, func(events []*storepb.Event) error {
		for _, e := range events {
			*numbers = append(*numbers, e.GetNumber())
		}
		return nil
	}
}

func upTo(from, to uint64) (numbers []uint64) {
	for n := from; n <= to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func TestReadEvents(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to uint64 // kept
		since    since
		want     []uint64
		notice   string
	}{
		{"none", 1, 0, since{}, nil, ""},
		{"all", 1, 3, since{}, upTo(1, 3), ""},
		{"all that are kept", 7, 9, since{}, upTo(7, 9), ""},
		{"several answers", 1, 2*eventLimit + 1, since{}, upTo(1, 2*eventLimit+1), ""},
		{"exactly one answer", 1, eventLimit, since{}, upTo(1, eventLimit), ""},
		{"number", 1, 9, since{number: 7}, upTo(7, 9), ""},
		{"number to come", 1, 9, since{number: 10}, nil, ""},
		{"number far off", 1, 9, since{number: 12}, nil, "event 12 does not exist yet; the last one is 9"},
		{"number of the oldest", 7, 9, since{number: 7}, upTo(7, 9), ""},
		{"number not kept", 7, 9, since{number: 2}, upTo(7, 9), "events 2 to 6 are no longer kept"},
		{"time", 1, 9, since{time: time.Unix(7, 0)}, upTo(7, 9), ""},
		{"time in another answer", 1, 900, since{time: time.Unix(700, 0)}, upTo(700, 900), ""},
		{"time of the oldest", 7, 9, since{time: time.Unix(7, 0)}, upTo(7, 9), ""},
		{"time not kept", 7, 9, since{time: time.Unix(6, 0)}, upTo(7, 9), "events before number 7 are no longer kept"},
		{"time before all", 1, 9, since{time: time.Unix(0, 5)}, upTo(1, 9), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader := &eventReader{ask: (&trail{t: t, from: test.from, to: test.to}).ask, from: test.since}
			numbers, notices, handle := collect(reader)
			require.NoError(t, reader.each(t.Context(), handle))
			require.Equal(t, test.want, *numbers)
			if test.notice == "" {
				require.Empty(t, *notices)
				return
			}
			require.Len(t, *notices, 1)
			require.Contains(t, (*notices)[0], test.notice)
		})
	}
}

func TestReadEventsFails(t *testing.T) {
	refused := errors.New("refused")
	silent := fmt.Errorf("%w (last: unavailable)", context.DeadlineExceeded)
	for _, err := range []error{refused, silent} {
		reader := &eventReader{ask: (&trail{t: t, fail: []error{err}}).ask}
		require.ErrorIs(t, reader.each(t.Context(), nil), err)
	}
	reader := &eventReader{ask: (&trail{t: t, fail: []error{silent, refused}}).ask, follow: true}
	require.ErrorIs(t, reader.each(t.Context(), nil), refused)

	full := errors.New("no space left on device")
	reader = &eventReader{ask: (&trail{t: t, from: 1, to: 1}).ask, follow: true}
	require.ErrorIs(t, reader.each(t.Context(), func([]*storepb.Event) error { return full }), full)
}

// TestFollowEvents has servers that do not answer for a while, and events that are dropped meanwhile.
func TestFollowEvents(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	tr := &trail{t: t, from: 1, to: 3}
	steps := []func(){
		func() { tr.to = 4 },
		func() {
			silent := fmt.Errorf("%w (last: unavailable)", context.DeadlineExceeded)
			tr.fail, tr.from, tr.to = []error{silent, silent}, 7, 8
		},
		func() { tr.to = 9 },
		stop,
	}
	tr.waited = func() {
		steps[0]()
		steps = steps[1:]
	}
	reader := &eventReader{ask: tr.ask, from: since{time: time.Unix(3, 0)}, follow: true}
	numbers, notices, handle := collect(reader)
	require.NoError(t, reader.each(ctx, handle))
	require.Equal(t, []uint64{3, 4, 7, 8, 9}, *numbers)
	require.Len(t, *notices, 3)
	require.Equal(t, "events 5 to 6 are no longer kept: see audit.jsonl on the servers", (*notices)[0])
	require.Contains(t, (*notices)[1], "no reply yet")
	require.Contains(t, (*notices)[2], "replies again")
}

func TestPrintEvent(t *testing.T) {
	by := &storepb.Caller{Host: "b", Pid: 99, Uid: 1000}
	at := time.Date(2026, 1, 2, 15, 4, 5, 678_901_234, time.UTC).UnixNano()
	for _, test := range []struct {
		event *storepb.Event
		want  string
	}{
		{
			&storepb.Event{
				Number: 1, Event: "lock_acquired", Path: []byte("jobs/a.lock"), Token: 52,
				Format: "pid", Holder: "99", Host: "b", Pid: 99, By: by,
			},
			"1     2026-01-02T15:04:05.678Z  lock_acquired     jobs/a.lock  token 52; pid lock, pid 99 on b; by pid 99, uid 1000 on b\n",
		},
		{
			&storepb.Event{
				Number: 23456, Event: "lock_stolen", Path: []byte("a \x1b\xff"), Token: 52, Format: "tower", Holder: "r-2", Host: "b",
				By: by, Previous: &storepb.Event{Token: 40, Format: "tower", Holder: "r-1", Host: "a", Pid: 7},
			},
			`23456 2026-01-02T15:04:05.678Z  lock_stolen       "a \x1b\xff"  token 52; tower lock of r-2 on b; ` +
				"before: token 40, tower lock of r-1, pid 7 on a; by pid 99, uid 1000 on b\n",
		},
		{
			&storepb.Event{
				Number: 3, Event: "lock_removed", Path: []byte("x"), Token: 5, Format: "none", Host: "a\nb", Reason: "why\r",
			},
			"3     2026-01-02T15:04:05.678Z  lock_removed      x  token 5; lock without format on \"a\\nb\"; by lockfs: \"why\\r\"\n",
		},
		{
			&storepb.Event{
				Number: 7, Event: "lock_released", Path: []byte("x"), Token: 5, Format: "forrst", Holder: "o", By: by, Request: "req 1",
			},
			"7     2026-01-02T15:04:05.678Z  lock_released     x  token 5; forrst lock of o; by pid 99, uid 1000 on b; for request \"req 1\"\n",
		},
		{
			&storepb.Event{Number: 4, Event: "host_unreachable", Host: "a", Reason: "no keepalive"},
			"4     2026-01-02T15:04:05.678Z  host_unreachable  host a: no keepalive\n",
		},
	} {
		test.event.Time = at
		var b strings.Builder
		printEvent(&b, test.event)
		require.Equal(t, test.want, b.String())
	}
}
