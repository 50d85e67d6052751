package forrst_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
)

const chargeResult = `{"charge_id":"ch_abc","status":"succeeded"}`

// testWait is far beyond what anything here takes.
const testWait = 20 * time.Second

// endpoint is a runner in front of a function that a test gives.
type endpoint struct {
	forrst.Runner
	t     testing.TB
	store *memory

	mu  sync.Mutex
	log []string // ids of the requests that were passed on
}

// newEndpoint has a function that answers with a result, unless it is given another one.
func newEndpoint(t testing.TB, function http.HandlerFunc) *endpoint {
	e := &endpoint{t: t, store: newMemory()}
	e.Store, e.Replay, e.Logger = e.store, time.Minute, slog.New(slog.DiscardHandler)
	if function == nil {
		function = func(w http.ResponseWriter, r *http.Request) { answerCharge(w, r) }
	}
	e.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		e.mu.Lock()
		e.log = append(e.log, idOf(body))
		e.mu.Unlock()
		function(w, r)
	})
	return e
}

func idOf(body []byte) string {
	var message struct{ ID string }
	_ = json.Unmarshal(body, &message)
	return message.ID
}

// answerCharge answers a request with the result of the document's example.
func answerCharge(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, `{%s,"id":%q,"result":%s}`, protocol, idOf(body), chargeResult)
}

// passed lists the requests that were passed on.
func (e *endpoint) passed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.log...)
}

func (e *endpoint) send(ctx context.Context, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/forrst", strings.NewReader(body)).WithContext(ctx)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// post sends a request and answers the response, which has a status.
func (e *endpoint) post(status int, body string) string {
	e.t.Helper()
	w := e.send(e.t.Context(), body)
	require.Equal(e.t, status, w.Code, w.Body.String())
	require.Equal(e.t, "application/json", w.Header().Get("Content-Type"))
	return w.Body.String()
}

// begin sends a request that the test does something during. The answer waits for its end.
func (e *endpoint) begin(ctx context.Context, body string) (ended func() *httptest.ResponseRecorder) {
	done := make(chan *httptest.ResponseRecorder, 1)
	go func() { done <- e.send(ctx, body) }()
	return func() *httptest.ResponseRecorder {
		e.t.Helper()
		select {
		case w := <-done:
			return w
		case <-time.After(testWait):
			e.t.Fatal("the request does not end")
			return nil
		}
	}
}

// awaits waits until something holds of the store.
func (e *endpoint) awaits(holds func(*memory) bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), testWait)
	defer cancel()
	require.NoError(e.t, e.store.await(ctx, func() bool { return holds(e.store) }))
}

// requireFree tells that no lock is left, also when its time is not over.
func (e *endpoint) requireFree() {
	e.t.Helper()
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	require.Empty(e.t, e.store.locks)
	for key, line := range e.store.lines {
		require.Empty(e.t, line, key)
	}
}

// code is the only error of a response.
func code(t testing.TB, response string) string {
	t.Helper()
	var message struct{ Errors []struct{ Code string } }
	require.NoError(t, json.Unmarshal([]byte(response), &message), response)
	require.Len(t, message.Errors, 1, response)
	return message.Errors[0].Code
}

// changed is a request of the examples with something else in it, in pairs.
func changed(request string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(request)
}

// withOwner is a charge whose lock has the owner of the examples.
var withOwner = changed(chargeRequest, `"ttl"`, `"owner":"`+owner+`","ttl"`)

func TestRunnerAnswersChargeAsInTheExample(t *testing.T) {
	const response = `{` + protocol + `,"id":"req_001","result":` + chargeResult + `,"extensions":[{"urn":` +
		`"urn:forrst:ext:atomicLock","data":{"key":"user:123","acquired":true,"owner":"` + owner + `",` +
		`"scope":"function","expires_at":"2024-03-15T10:30:30Z"}}]}`
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		answerCharge(w, r)
		require.NotEmpty(t, r.Header.Get(forrst.TokenHeader))
	})
	require.Equal(t, response, e.post(http.StatusOK, withOwner))
	e.requireFree()
	require.Equal(t, []string{"acquire", "record", "drop"}, e.store.calls)

	var made struct {
		Extensions []struct{ Data struct{ Owner string } }
	}
	require.NoError(t, json.Unmarshal([]byte(e.post(http.StatusOK, chargeRequest)), &made))
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, made.Extensions[0].Data.Owner)
}

func TestRunnerRefusesAsInTheExample(t *testing.T) {
	e := newEndpoint(t, nil)
	e.post(http.StatusOK, changed(chargeRequest, `"ttl"`, `"auto_release":false,"ttl"`))
	require.Equal(t, `{`+protocol+`,"id":"req_003","result":null,"errors":[{"code":"LOCK_ACQUISITION_FAILED",`+
		`"message":"Unable to acquire lock","details":{"key":"user:123","scope":"function",`+
		`"full_key":"lock:payments.charge:user:123"}}],"extensions":[{"urn":"urn:forrst:ext:atomicLock",`+
		`"data":{"key":"user:123","acquired":false}}]}`+"\n", e.post(http.StatusOK, changed(chargeRequest, "req_001", "req_003")))
	require.Equal(t, []string{"req_001"}, e.passed())
	e.store.advance(30*time.Second + 1)
	e.post(http.StatusOK, changed(chargeRequest, "req_001", "req_005"))
	require.Equal(t, []string{"req_001", "req_005"}, e.passed(), "it had expired")
}

func TestRunnerTimesOutAsInTheExample(t *testing.T) {
	e := newEndpoint(t, nil)
	e.post(http.StatusOK, reportRequest) // keeps its lock
	over := make(chan time.Time)
	close(over)
	e.store.after = func(d time.Duration) <-chan time.Time {
		require.Equal(t, 5*time.Second, d)
		return over
	}
	require.Equal(t, `{`+protocol+`,"id":"req_004","result":null,"errors":[{"code":"LOCK_TIMEOUT",`+
		`"message":"Lock acquisition timed out after 5 seconds","details":{"key":"billing:report",`+
		`"scope":"global","full_key":"lock:billing:report","waited":{"value":5,"unit":"second"}}}]}`+"\n",
		e.post(http.StatusOK, changed(reportRequest, "req_002", "req_004")))
	require.Equal(t, []string{"req_002"}, e.passed())
}

// system is a call of a system function with arguments.
func system(id, function, arguments string) string {
	return `{` + protocol + `,"id":"` + id + `","call":{"function":"urn:cline:forrst:ext:atomic-lock:fn:` + function +
		`","version":"1.0.0","arguments":` + arguments + `}}`
}

func TestRunnerSystemFunctionsAsInTheExamples(t *testing.T) {
	e := newEndpoint(t, nil)
	result := func(id, result string) string {
		return `{` + protocol + `,"id":"` + id + `","result":` + result + "}\n"
	}
	refused := func(id, code, message string) string {
		return `{` + protocol + `,"id":"` + id + `","result":null,"errors":[{"code":"` + code + `","message":"` + message +
			`","details":{"key":"lock:billing:report"}}]}` + "\n"
	}
	const key = `{"key":"lock:billing:report"}`
	statusRequest := system("req_status", "status", key)
	free := result("req_status", `{"key":"lock:billing:report","locked":false}`)
	require.Equal(t, free, e.post(http.StatusOK, statusRequest))
	require.Equal(t, refused("req_release", "LOCK_NOT_FOUND", "Lock does not exist or has expired"), e.post(http.StatusOK, releaseRequest))
	require.Equal(t, refused("req_force", "LOCK_NOT_FOUND", "Lock does not exist or has expired"),
		e.post(http.StatusOK, system("req_force", "force-release", key)))

	e.post(http.StatusOK, changed(reportRequest, `"scope"`, `"owner":"`+owner+`","scope"`))
	e.store.advance(10 * time.Minute)
	require.Equal(t, result("req_status", `{"key":"lock:billing:report","locked":true,"owner":"`+owner+`",`+
		`"acquired_at":"2024-03-15T10:30:00Z","expires_at":"2024-03-15T11:30:00Z","ttl_remaining":3000}`),
		e.post(http.StatusOK, statusRequest))
	require.Equal(t, refused("req_release", "LOCK_OWNERSHIP_MISMATCH", "Lock is owned by a different process"),
		e.post(http.StatusOK, changed(releaseRequest, owner, "somebody else")))
	released := result("req_release", `{"released":true,"key":"lock:billing:report"}`)
	require.Equal(t, released, e.post(http.StatusOK, releaseRequest))
	require.Equal(t, free, e.post(http.StatusOK, statusRequest))
	require.Equal(t, released, e.post(http.StatusOK, releaseRequest), "it is the same request")
	require.Equal(t, refused("another", "LOCK_ALREADY_RELEASED", "Lock was already released"),
		e.post(http.StatusOK, changed(releaseRequest, "req_release", "another")))

	e.post(http.StatusOK, changed(reportRequest, "req_002", "req_006"))
	require.Equal(t, result("req_force", `{"released":true,"key":"lock:billing:report","forced":true}`),
		e.post(http.StatusOK, system("req_force", "force-release", key)))
	require.Equal(t, free, e.post(http.StatusOK, statusRequest))
	require.Equal(t, []string{"req_002", "req_006"}, e.passed())
}

func TestRunnerMalformedRequests(t *testing.T) {
	e := newEndpoint(t, nil)
	for body, field := range map[string]string{
		changed(chargeRequest, `"name":"forrst"`, `"name":"x"`):                            "protocol.name",
		changed(chargeRequest, `"payments.charge"`, `""`):                                  "call.function",
		changed(chargeRequest, `"options":{`, `"x":{`):                                     "extensions[0].options",
		changed(chargeRequest, `"unit":"second"`, `"unit":"year"`):                         "extensions[0].options.ttl.unit",
		changed(chargeRequest, `"ttl"`, `"autoRelease":false,"ttl"`):                       "extensions[0].options.autoRelease",
		changed(chargeRequest, `"user:123"`, `"`+strings.Repeat("k", 300)+`"`):             "extensions[0].options.key",
		changed(chargeRequest, `"key":"user:123"`, `"key":"user:123","owner":"`+"\\n"+`"`): "extensions[0].options.owner",
		system("r", "release", `{"key":"k"}`):                                              "call.arguments.owner",
		system("r", "release", `{"owner":"o"}`):                                            "call.arguments.key",
		system("r", "status", `{}`):                                                        "call.arguments.key",
		system("r", "force-release", `{"key":7}`):                                          "call.arguments.key",
		strings.Replace(system("r", "status", `{}`), `,"arguments":{}`, "", 1):             "call.arguments",
	} {
		var message struct {
			ID     string
			Result any
			Errors []forrst.Error
		}
		require.NoError(t, json.Unmarshal([]byte(e.post(http.StatusBadRequest, body)), &message))
		require.Equal(t, idOf([]byte(body)), message.ID)
		require.Len(t, message.Errors, 1)
		require.Equal(t, forrst.InvalidRequest, message.Errors[0].Code)
		require.Equal(t, &forrst.Details{Field: field}, message.Errors[0].Details, body)
		require.Contains(t, message.Errors[0].Message, field)
	}
	for _, body := range []string{"", "null", "[]", `{"id":`, chargeRequest + "{}"} {
		require.Equal(t, "INVALID_REQUEST", code(t, e.post(http.StatusBadRequest, body)))
	}
	large := changed(chargeRequest, `"amount":100`, `"amount":"`+strings.Repeat("9", forrst.MaxRequest)+`"`)
	require.Equal(t, "INVALID_REQUEST", code(t, e.post(http.StatusRequestEntityTooLarge, large)))
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/forrst", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "POST", w.Header().Get("Allow"))

	e.Next = nil
	for _, body := range []string{chargeRequest, changed(chargeRequest, "urn:forrst:ext:atomicLock", "urn:other")} {
		require.Equal(t, "FUNCTION_NOT_FOUND", code(t, e.post(http.StatusNotFound, body)))
	}
	require.Empty(t, e.passed())
	require.Empty(t, e.store.calls)
}

func TestRunnerStoreThatIsDown(t *testing.T) {
	e := newEndpoint(t, nil)
	e.store.setDown(errors.New("no quorum"))
	for _, body := range []string{chargeRequest, releaseRequest, system("r", "status", `{"key":"k"}`)} {
		response := e.post(http.StatusServiceUnavailable, body)
		require.Equal(t, "UNAVAILABLE", code(t, response))
		require.Contains(t, response, "no quorum")
	}
	require.Empty(t, e.passed())
	require.True(t, forrst.Unavailable.Retryable())
	e.store.setDown(nil)
	e.post(http.StatusOK, chargeRequest)
}

func TestRunnerPassesOtherCallsOn(t *testing.T) {
	body := changed(chargeRequest, "urn:forrst:ext:atomicLock", "urn:other", `{"protocol"`, "  {\"protocol\"")
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, body, string(got))
		require.EqualValues(t, len(body), r.ContentLength)
		require.Empty(t, r.Header.Get(forrst.TokenHeader), "only a runner says that")
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("not even JSON"))
		w.(http.Flusher).Flush()
	})
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set(forrst.TokenHeader, "9999")
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	require.Equal(t, http.StatusTeapot, w.Code)
	require.Equal(t, "not even JSON", w.Body.String())
	require.Equal(t, "text/plain", w.Header().Get("Content-Type"))
	require.Empty(t, e.store.calls)
}

func TestRunnerKeepsEveryOtherByteOfResponse(t *testing.T) {
	const data = `{"urn":"urn:forrst:ext:atomicLock","data":{"key":"user:123","acquired":true,"owner":"` + owner +
		`","scope":"function","expires_at":"2024-03-15T10:30:30Z"}}`
	const minimal = `"protocol":{"name":"forrst"}`
	for from, to := range map[string]string{
		`{P}`:                                 `{P,"extensions":[` + data + `]}`,
		"{ P }\n":                             `{ P,"extensions":[` + data + "]}\n",
		`{"z":1,  P, "a":1.50 }`:              `{"z":1,  P, "a":1.50,"extensions":[` + data + `]}`,
		`{"extensions":null,"id":"x",P}`:      `{"extensions":[` + data + `],"id":"x",P}`,
		`{"extensions":[ ],P,"id":"x"}`:       `{"extensions":[` + data + `],P,"id":"x"}`,
		`{"id":"x",P,"extensions":[{"a":1}]}`: `{"id":"x",P,"extensions":[{"a":1},` + data + `]}`,
		`{P,"result":{"s":"}"}}`:              `{P,"result":{"s":"}"},"extensions":[` + data + `]}`,
	} {
		from, to = changed(from, "P", minimal), changed(to, "P", minimal)
		e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Served-By", "next")
			w.Header().Set("Content-Length", fmt.Sprint(len(from)))
			_, _ = w.Write([]byte(from))
		})
		w := e.send(t.Context(), withOwner)
		require.Equal(t, to, w.Body.String())
		require.Equal(t, "next", w.Header().Get("X-Served-By"))
		require.Empty(t, w.Header().Get("Content-Length"))
	}
}

// What else an upstream server says is for the client: the page of a proxy, or of another protocol.
func TestRunnerPassesOtherAnswersUnchanged(t *testing.T) {
	for _, body := range []string{
		"", "oops", "[]", "{}", "\xff", `{"message":"no Route matched"}`, `{"protocol":{"name":"other"},"extensions":[]}`, `{"protocol":"forrst"}`,
		`{"protocol":{"name":"forrst"},"extensions":{}}`, `{"protocol":{"name":"forrst"},"id":1,"id":2}`,
	} {
		e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=latin1")
			w.Header().Set("Content-Encoding", "x")
			w.Header().Set("Etag", `"1"`)
			w.Header().Set("Retry-After", "120")
			w.Header().Add("Set-Cookie", "a=1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(body))
		})
		header := http.Header{
			"Content-Type": {"text/html; charset=latin1"}, "Content-Encoding": {"x"}, "Etag": {`"1"`}, "Retry-After": {"120"}, "Set-Cookie": {"a=1"},
		}
		first := e.send(t.Context(), chargeRequest)
		require.Equal(t, http.StatusServiceUnavailable, first.Code)
		require.Equal(t, body, first.Body.String())
		require.Equal(t, header, first.Header())
		e.requireFree()

		again := e.send(t.Context(), chargeRequest)
		require.Equal(t, http.StatusServiceUnavailable, again.Code)
		require.Equal(t, body, again.Body.String())
		header.Del("Set-Cookie")
		header.Set(forrst.ReplayHeader, "true")
		require.Equal(t, header, again.Header())
		require.Len(t, e.passed(), 1)

		left := e.send(t.Context(), changed(kept, "req_001", "keeps"))
		require.Equal(t, body, left.Body.String())
		token := left.Header().Get(forrst.OwnerHeader)
		require.Equal(t, e.store.locks[chargeKey].Owner, token, "it can be released")
		require.Contains(t, e.post(http.StatusOK, system("r", "release", `{"key":"`+chargeKey+`","owner":"`+token+`"}`)), `"released":true`)
		named := e.send(t.Context(), keptByOwner)
		require.Equal(t, body, named.Body.String())
		require.NotContains(t, named.Header(), forrst.OwnerHeader, "the client knows it")
	}
}
