package forrst_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
)

// requireReplay sends a request that gets the same answer as another attempt of it.
func (e *endpoint) requireReplay(of *httptest.ResponseRecorder, body string) {
	e.t.Helper()
	before := e.passed()
	w := e.send(e.t.Context(), body)
	require.Equal(e.t, of.Code, w.Code)
	require.Equal(e.t, of.Body.String(), w.Body.String())
	require.Equal(e.t, []string{"true"}, w.Header()[forrst.ReplayHeader])
	require.Equal(e.t, before, e.passed(), "it is not done")
}

// requireDone sends a request that is done, and gets a lock.
func (e *endpoint) requireDone(body string) *httptest.ResponseRecorder {
	e.t.Helper()
	before := e.passed()
	w := e.send(e.t.Context(), body)
	require.NotContains(e.t, w.Header(), forrst.ReplayHeader)
	require.Contains(e.t, w.Body.String(), `"acquired":true`)
	require.Len(e.t, e.passed(), len(before)+1, "it is done")
	return w
}

// requireRefused sends a request that finds the lock held, and is told nothing of it.
func (e *endpoint) requireRefused(body string) {
	e.t.Helper()
	before := e.passed()
	w := e.begin(e.t.Context(), body)()
	require.NotContains(e.t, w.Header(), forrst.ReplayHeader)
	require.Equal(e.t, "LOCK_ACQUISITION_FAILED", code(e.t, w.Body.String()))
	require.Contains(e.t, w.Body.String(), `"data":{"key":"user:123","acquired":false}`)
	require.Equal(e.t, before, e.passed(), "it is not done")
}

// lockData is what a response says of its lock.
func lockData(t testing.TB, w *httptest.ResponseRecorder) (data forrst.Data) {
	t.Helper()
	var message struct{ Extensions []struct{ Data forrst.Data } }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &message))
	require.Len(t, message.Extensions, 1)
	return message.Extensions[0].Data
}

// A job that sends one id every five minutes is done each time.
func TestReplayOfCallThatWasDoneEndsAfterItsTime(t *testing.T) {
	for name, function := range map[string]http.HandlerFunc{"result": nil, "error": answerError} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, function)
			for range 3 {
				first := e.requireDone(chargeRequest)
				e.requireReplay(first, chargeRequest)
				e.store.advance(e.Replay - 1)
				e.requireReplay(first, chargeRequest)
				e.store.advance(1)
			}
			e.Replay = 2 * time.Second
			first := e.requireDone(chargeRequest)
			e.store.advance(e.Replay - 1)
			e.requireReplay(first, chargeRequest)
			e.store.advance(1)
			e.requireDone(chargeRequest)
			e.requireFree()
		})
	}
}

func TestReplayOfKeptLockEndsWithThatLock(t *testing.T) {
	long := changed(keptByOwner, `"value":30,"unit":"second"`, `"value":1,"unit":"hour"`)
	release := system("release", "release", `{"key":"`+chargeKey+`","owner":"`+owner+`"}`)
	force := func(id string) string { return system(id, "force-release", `{"key":"`+chargeKey+`"}`) }
	other := changed(long, owner, "somebody else", "req_001", "req_c")

	e := newEndpoint(t, nil)
	first := e.requireDone(long)
	e.store.advance(time.Hour)
	e.requireReplay(first, long)
	e.store.advance(1)
	second := e.requireDone(long) // the first one has expired
	require.True(t, lockData(t, second).ExpiresAt.After(e.store.now))
	e.requireReplay(second, long)

	for _, end := range []string{release, force("force 1")} {
		e.post(http.StatusOK, end)
		e.requireReplay(e.requireDone(long), long)
		e.post(http.StatusOK, end)
		e.requireDone(other)
		e.requireRefused(long)
		e.post(http.StatusOK, force("force 2"))
	}
	e.requireFree()
}

// Whoever sends the same bytes may be another client, or another run of the same program.
func TestTokenThatTheServerMadeIsToldOnce(t *testing.T) {
	g := newGate()
	e := newEndpoint(t, g.serve)
	first := e.begin(t.Context(), kept)
	g.await(t)
	e.requireRefused(kept) // under way
	g.leave <- struct{}{}
	token := lockData(t, first()).Owner
	require.NotEmpty(t, token)
	e.requireRefused(kept) // done

	line := changed(kept, `"ttl"`, `"block":{"value":1,"unit":"hour"},"ttl"`)
	next := e.begin(t.Context(), line)
	e.awaits(func(m *memory) bool { return len(m.lines[chargeKey]) == 1 })
	e.post(http.StatusOK, system("release", "release", `{"key":"`+chargeKey+`","owner":"`+token+`"}`))
	g.await(t)
	g.leave <- struct{}{}
	served := next()
	require.NotContains(t, served.Header(), forrst.ReplayHeader)
	require.NotEqual(t, token, lockData(t, served).Owner)
	require.Equal(t, []string{"acquire", "acquire"}, e.store.calls, "no answer is kept")

	e = newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) { forrst.Report(r.Context(), forrst.Unfinished) })
	unfinished := e.requireDone(chargeRequest)
	require.NotEmpty(t, lockData(t, unfinished).Owner)
	again := e.send(t.Context(), chargeRequest)
	require.Equal(t, "true", again.Header().Get(forrst.ReplayHeader))
	require.Equal(t, forrst.Data{Key: "user:123"}, lockData(t, again), "the lock is still there")
	require.Len(t, e.passed(), 1)
}

// An answer that was too large to be kept is not done again either, and its lock is told of.
func TestReplayOfAnswerThatWasNotKept(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{%s,"result":%q}`, protocol, strings.Repeat("x", forrst.MaxAnswer))
	})
	first := e.requireDone(keptByOwner)
	again := e.send(t.Context(), keptByOwner)
	require.Equal(t, "RESPONSE_NOT_KEPT", code(t, again.Body.String()))
	require.Equal(t, lockData(t, first), lockData(t, again))
	require.Equal(t, "true", again.Header().Get(forrst.ReplayHeader))
	require.Len(t, e.passed(), 1)
}

func TestReplayOfRelease(t *testing.T) {
	e := newEndpoint(t, nil)
	for function, arguments := range map[string]string{
		"release":       `{"key":"` + chargeKey + `","owner":"` + owner + `"}`,
		"force-release": `{"key":"` + chargeKey + `"}`,
	} {
		t.Run(function, func(t *testing.T) {
			e.requireDone(changed(keptByOwner, "req_001", function))
			body := system("r", function, arguments)
			first := e.send(t.Context(), body)
			require.Contains(t, first.Body.String(), `"released":true`)
			require.NotContains(t, first.Header(), forrst.ReplayHeader)
			e.requireReplay(first, body)
			e.store.advance(e.Replay - 1)
			e.requireReplay(first, body)
			e.store.advance(1)
			late := e.send(t.Context(), body)
			require.Contains(t, []string{"LOCK_ALREADY_RELEASED", "LOCK_NOT_FOUND"}, code(t, late.Body.String()))
			require.NotContains(t, late.Header(), forrst.ReplayHeader)
		})
	}
}

func TestWithoutReplayEachRequestIsOneOfItsOwn(t *testing.T) {
	g := newGate()
	e := newEndpoint(t, g.serve)
	e.Replay = 0
	for _, body := range []string{chargeRequest, keptByOwner} {
		first := e.begin(t.Context(), body)
		g.await(t)
		e.requireRefused(body)
		g.leave <- struct{}{}
		require.Contains(t, first().Body.String(), `"acquired":true`)
		second := e.begin(t.Context(), chargeRequest)
		if body == chargeRequest {
			g.await(t)
			g.leave <- struct{}{}
			require.NotContains(t, second().Header(), forrst.ReplayHeader)
			continue
		}
		require.Equal(t, "LOCK_ACQUISITION_FAILED", code(t, second().Body.String()))
	}
	release := system("release", "release", `{"key":"`+chargeKey+`","owner":"`+owner+`"}`)
	require.Contains(t, e.post(http.StatusOK, release), `"released":true`)
	require.Equal(t, "LOCK_ALREADY_RELEASED", code(t, e.post(http.StatusOK, release)))
	require.NotContains(t, e.store.calls, "record")
}
