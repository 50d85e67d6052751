package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
)

// eventReader reads /v1/events at an address as it comes, until it is closed.
type eventReader struct {
	t      testing.TB
	answer *http.Response
	lines  *bufio.Scanner
	ids    bool // it is one of server-sent events
}

// readEvents asks with headers, which are in pairs.
func readEvents(t testing.TB, address string, headers ...string) *eventReader {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	require.Equal(t, http.StatusOK, answer.StatusCode)
	return &eventReader{t: t, answer: answer, lines: bufio.NewScanner(answer.Body), ids: answer.Header.Get("Content-Type") == "text/event-stream"}
}

// line is the next one, which there has to be.
func (r *eventReader) line() string {
	r.t.Helper()
	require.True(r.t, r.lines.Scan(), "the stream has ended: %v", r.lines.Err())
	return r.lines.Text()
}

func (r *eventReader) next() (e lockjson.Event) {
	r.t.Helper()
	if !r.ids {
		require.NoError(r.t, json.Unmarshal([]byte(r.line()), &e))
		return e
	}
	id, is := strings.CutPrefix(r.line(), "id: ")
	require.True(r.t, is)
	data, is := strings.CutPrefix(r.line(), "data: ")
	require.True(r.t, is)
	require.Empty(r.t, r.line(), "what ends an event")
	require.NoError(r.t, json.Unmarshal([]byte(data), &e))
	require.Equal(r.t, strconv.FormatUint(e.Number, 10), id)
	return e
}

// until reads up to the event of a lock.
func (r *eventReader) until(path string) lockjson.Event {
	r.t.Helper()
	e := r.next()
	for e.LockPath != path {
		e = r.next()
	}
	return e
}

// TestEventsAreFollowed: one that happens while somebody reads comes to him, whoever he is; after= leaves out those before.
func TestEventsAreFollowed(t *testing.T) {
	d := openDesk(t)
	d.take("first.lock", 0o644)
	at := d.serve(0) + "/v1/events"
	all, sse := readEvents(t, at), readEvents(t, at, "Accept", "text/event-stream")
	require.Equal(t, "application/x-ndjson", all.answer.Header.Get("Content-Type"))
	require.True(t, sse.ids)
	first := all.until("first.lock")
	require.Equal(t, first.Number, sse.until("first.lock").Number)
	later := readEvents(t, fmt.Sprintf("%s?after=%d", at, first.Number))
	other := readEvents(t, fmt.Sprintf("%s/v1/events?after=%d", d.serve(1000), first.Number))

	d.take("second.lock", 0o644)
	d.take("secret.lock", 0o600)
	d.take("third.lock", 0o644)
	for i, r := range []*eventReader{all, sse, later, other} {
		number := first.Number
		for _, path := range []string{"second.lock", "secret.lock", "third.lock"} {
			e := r.next()
			require.Equal(t, path, e.LockPath, "reader %d", i)
			require.Equal(t, number+1, e.Number, "reader %d: next to the one before", i)
			number = e.Number
		}
	}
	for _, after := range []string{"-1", "x", "1e3"} {
		require.Equal(t, http.StatusBadRequest, d.ask(0, http.MethodGet, "/v1/events?after="+after, nil).Code)
	}
}

// TestAReaderThatComesBackMissesNothing: a browser whose connection ends again and again, and that names the event it saw last, has each
// event once, whether it was there or away when that happened. What it asked for at first stays in the address.
func TestAReaderThatComesBackMissesNothing(t *testing.T) {
	d := openDesk(t)
	at := d.serve(0) + "/v1/events?after=1"
	const times = 12
	var seen []uint64
	path, last := "", ""
	read := func(r *eventReader) {
		e := r.next()
		seen = append(seen, e.Number)
		path, last = e.LockPath, strconv.FormatUint(e.Number, 10)
	}
	for i := range times {
		d.take(fmt.Sprintf("away-%d.lock", i), 0o644)
		r := readEvents(t, at, "Accept", "text/event-stream", "Last-Event-ID", last)
		d.take(fmt.Sprintf("here-%d.lock", i), 0o644)
		for range i % 4 {
			read(r)
		}
		require.NoError(t, r.answer.Body.Close())
	}
	end := readEvents(t, at, "Accept", "text/event-stream", "Last-Event-ID", last)
	for path != fmt.Sprintf("here-%d.lock", times-1) {
		read(end)
	}
	require.GreaterOrEqual(t, len(seen), 2*times)
	for i, number := range seen {
		require.EqualValues(t, i+2, number, "each once, in their order")
	}
}

// TestAFollowerEndsWithTheServer, or an HTTP server that is to end would wait for it.
func TestAFollowerEndsWithTheServer(t *testing.T) {
	d := openDesk(t)
	r := readEvents(t, d.serve(0)+"/v1/events")
	d.take("a.lock", 0o644)
	r.until("a.lock")
	require.NoError(t, d.server.Close())
	for r.lines.Scan() {
	}
	require.NoError(t, r.lines.Err(), "it ends well")
}
