package forrst_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
)

const chargeKey = "lock:payments.charge:user:123"

// kept is a charge that keeps its lock.
var kept = changed(chargeRequest, `"ttl"`, `"auto_release":false,"ttl"`)

// keptByOwner names its owner.
var keptByOwner = changed(kept, `"ttl"`, `"owner":"`+owner+`","ttl"`)

// waiting is a charge that waits for its lock.
func waiting(id string) string {
	return changed(chargeRequest, "req_001", id, `"ttl"`, `"block":{"value":1,"unit":"hour"},"ttl"`)
}

// answerError answers with an error of the function's own.
func answerError(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `{%s,"id":"req_001","result":null,"errors":[{"code":"CARD_DECLINED","message":"no"}]}`, protocol)
}

func TestRunnerReleasesWhateverComes(t *testing.T) {
	for name, function := range map[string]http.HandlerFunc{
		"result": nil,
		"error":  answerError,
		"panic":  func(http.ResponseWriter, *http.Request) { panic("oops") },
		"abort":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"status": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, forrst.MaxResponse+1))
			require.Error(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, function)
			response := e.send(t.Context(), chargeRequest).Body.String()
			require.Equal(t, name != "status", strings.Contains(response, `"acquired":true`), "it is no Forrst response")
			e.requireFree()
			require.Equal(t, response, e.send(t.Context(), chargeRequest).Body.String(), "the same request")
			require.Equal(t, []string{"req_001"}, e.passed())

			e = newEndpoint(t, function)
			e.send(t.Context(), kept)
			require.Len(t, e.store.locks, 1, "the lock stays")
			require.Equal(t, []string{"acquire"}, e.store.calls, "nobody else is told of it")
		})
	}
	e := newEndpoint(t, func(http.ResponseWriter, *http.Request) { panic("oops") })
	require.Equal(t, "INTERNAL_ERROR", code(t, e.post(http.StatusInternalServerError, chargeRequest)))
	e = newEndpoint(t, answerError)
	require.Equal(t, "CARD_DECLINED", code(t, e.post(http.StatusOK, chargeRequest)))
}

// gate is a function that waits for the test.
type gate struct {
	entered chan *http.Request
	leave   chan struct{}
}

func newGate() *gate { return &gate{make(chan *http.Request, 10), make(chan struct{})} }

func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	g.entered <- r
	<-g.leave
	answerCharge(w, r)
}

func (g *gate) await(t testing.TB) *http.Request {
	t.Helper()
	select {
	case r := <-g.entered:
		return r
	case <-time.After(testWait):
		t.Fatal("nothing was passed on")
		return nil
	}
}

func TestRunnerCallGoesOnWithoutItsClient(t *testing.T) {
	g := newGate()
	e := newEndpoint(t, g.serve)
	ctx, hangUp := context.WithCancel(t.Context())
	first := e.begin(ctx, chargeRequest)
	inside := g.await(t)
	hangUp()
	second := e.begin(t.Context(), waiting("req_002"))
	e.awaits(func(m *memory) bool { return len(m.lines[chargeKey]) == 1 })
	require.NoError(t, inside.Context().Err())
	require.Equal(t, []string{"req_001"}, e.passed(), "they do not overlap")
	g.leave <- struct{}{}
	first()
	g.await(t)
	close(g.leave)
	require.Contains(t, second().Body.String(), `"acquired":true`)
	e.requireFree()
	require.Contains(t, e.post(http.StatusOK, chargeRequest), "ch_abc", "the answer was kept for it")
	require.Equal(t, []string{"req_001", "req_002"}, e.passed())
}

func TestRunnerWaitEndsWithItsClient(t *testing.T) {
	e := newEndpoint(t, nil)
	e.post(http.StatusOK, kept)
	ctx, hangUp := context.WithCancel(t.Context())
	gone := e.begin(ctx, waiting("gone"))
	e.awaits(func(m *memory) bool { return len(m.lines[chargeKey]) == 1 })
	next := e.begin(t.Context(), waiting("next"))
	e.awaits(func(m *memory) bool { return len(m.lines[chargeKey]) == 2 })
	hangUp()
	gone()
	e.post(http.StatusOK, system("r", "force-release", `{"key":"`+chargeKey+`"}`))
	require.Contains(t, next().Body.String(), `"acquired":true`)
	require.Equal(t, []string{"req_001", "next"}, e.passed())
	e.requireFree()

	e.post(http.StatusOK, changed(kept, "req_001", "again"))
	hungUp, cancel := context.WithCancel(t.Context())
	cancel()
	e.send(hungUp, changed(chargeRequest, "req_001", "late", "user:123", "user:456"))
	require.NotContains(t, e.passed(), "late", "nobody waits for its answer")
	require.Nil(t, e.store.locks["lock:payments.charge:user:456"])
}

func TestRunnerCallEndsBeforeItsLock(t *testing.T) {
	const ttl = 200 * time.Millisecond
	short := changed(chargeRequest, `{"value":30,"unit":"second"}`, `{"value":200,"unit":"millisecond"}`)
	var unfinished atomic.Bool
	e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		deadline, bounded := r.Context().Deadline()
		require.True(t, bounded)
		require.LessOrEqual(t, time.Until(deadline), ttl-ttl/10)
		<-r.Context().Done()
		if unfinished.Load() {
			forrst.Report(r.Context(), forrst.Unfinished)
		}
	})
	require.Equal(t, "DEPENDENCY_ERROR", code(t, e.post(http.StatusBadGateway, short)))
	e.requireFree() // the function has ended

	unfinished.Store(true)
	short = changed(short, "req_001", "req_002")
	require.Equal(t, "DEADLINE_EXCEEDED", code(t, e.post(http.StatusGatewayTimeout, short)))
	require.Len(t, e.store.locks, 1, "it may still be at work")
	require.Equal(t, "DEADLINE_EXCEEDED", code(t, e.post(http.StatusGatewayTimeout, short)))
	require.Len(t, e.passed(), 2, "it is not done again")
	forrst.Report(t.Context(), forrst.Unfinished) // nobody minds
}

func TestRunnerNeverCalledIsNotDone(t *testing.T) {
	var reachable atomic.Bool
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if !reachable.Load() {
			forrst.Report(r.Context(), forrst.NotCalled)
			answerError(w, r)
			return
		}
		answerCharge(w, r)
	})
	require.Contains(t, e.post(http.StatusOK, kept), `"data":{"key":"user:123","acquired":false}`)
	e.requireFree()
	require.Equal(t, []string{"acquire", "drop"}, e.store.calls)
	reachable.Store(true)
	require.Contains(t, e.post(http.StatusOK, kept), `"acquired":true`)
}

// A retry waits for the first attempt and gets its answer, whether it would wait for others or not.
func TestRunnerDoesSameRequestOnce(t *testing.T) {
	g := newGate()
	e := newEndpoint(t, g.serve)
	for _, body := range []string{chargeRequest, waiting("waits"), changed(keptByOwner, "req_001", "keeps")} {
		id := idOf([]byte(body))
		first := e.begin(t.Context(), body)
		g.await(t)
		retries := []func() *httptest.ResponseRecorder{e.begin(t.Context(), body), e.begin(t.Context(), body)}
		other := e.begin(t.Context(), changed(body, `"amount":100`, `"amount":200`, `"block":{"value":1,"unit":"hour"},`, ""))
		require.Equal(t, "LOCK_ACQUISITION_FAILED", code(t, other().Body.String()), "another client has the same id")
		g.leave <- struct{}{}
		answered := first()
		require.Empty(t, answered.Header().Get(forrst.ReplayHeader))
		answer := answered.Body.String()
		require.Contains(t, answer, "ch_abc")
		for _, retry := range retries {
			again := retry()
			require.Equal(t, answer, again.Body.String())
			require.Equal(t, "true", again.Header().Get(forrst.ReplayHeader))
		}
		require.Equal(t, answer, e.post(http.StatusOK, body))
		times := 0
		for _, passed := range e.passed() {
			if passed == id {
				times++
			}
		}
		require.Equal(t, 1, times, id)
	}
}

func TestRunnerAnswerThatIsTooLargeToKeep(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{%s,"id":"req_001","result":%q}`, protocol, strings.Repeat("x", forrst.MaxAnswer))
	})
	require.Contains(t, e.post(http.StatusOK, chargeRequest), strings.Repeat("x", forrst.MaxAnswer))
	require.Equal(t, "RESPONSE_NOT_KEPT", code(t, e.post(http.StatusOK, chargeRequest)))
	require.Len(t, e.passed(), 1)
}

func TestRunnerSettlesWhenTheStoreIsBack(t *testing.T) {
	g := newGate()
	e := newEndpoint(t, g.serve)
	call := e.begin(t.Context(), chargeRequest)
	g.await(t)
	e.store.setDown(errors.New("no quorum"))
	close(g.leave)
	e.awaits(func(m *memory) bool { return m.down != nil && len(m.calls) == 1 })
	e.store.setDown(nil)
	require.Contains(t, call().Body.String(), "ch_abc")
	require.Equal(t, []string{"acquire", "record", "drop"}, e.store.calls)
	e.requireFree()
}
