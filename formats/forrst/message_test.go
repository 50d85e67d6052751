package forrst_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
	"lockfs/test/fuzzing"
)

const (
	protocol = `"protocol":{"name":"forrst","version":"0.1.0"}`
	owner    = "550e8400-e29b-41d4-a716-446655440000"

	chargeRequest = `{` + protocol + `,"id":"req_001","call":{"function":"payments.charge","version":"1.0.0",` +
		`"arguments":{"user_id":"user_123","amount":100}},"extensions":[{"urn":"urn:forrst:ext:atomicLock",` +
		`"options":` + charge + `}]}`
	reportRequest = `{` + protocol + `,"id":"req_002","call":{"function":"billing.generateReport",` +
		`"version":"1.0.0","arguments":{"month":"2024-03"}},"extensions":[{"urn":"urn:forrst:ext:atomicLock",` +
		`"options":` + report + `}]}`
	releaseRequest = `{` + protocol + `,"id":"req_release","call":{` +
		`"function":"urn:cline:forrst:ext:atomic-lock:fn:release","version":"1.0.0",` +
		`"arguments":{"key":"lock:billing:report","owner":"` + owner + `"}}}`
)

func request(t testing.TB, text string) (*forrst.Request, *forrst.Options) {
	t.Helper()
	r, err := forrst.ParseRequest([]byte(text))
	require.NoError(t, err, text)
	o, err := r.LockOptions()
	require.NoError(t, err, text)
	return r, o
}

func TestForrstRequestsOfTheExamples(t *testing.T) {
	for _, text := range []string{chargeRequest, reportRequest, releaseRequest} {
		r, _ := request(t, text)
		requireJSON(t, text, r)
	}
	r, o := request(t, chargeRequest)
	require.Equal(t, "req_001", r.ID)
	require.Equal(t, "payments.charge", r.Call.Function)
	require.Equal(t, "user:123", o.Key)

	r, o = request(t, releaseRequest)
	require.Nil(t, o, "a request without the extension asks for no lock")
	require.Equal(t, forrst.ReleaseFunction, r.Call.Function)
	a, err := forrst.ParseReleaseArguments(r.Call.Arguments)
	require.NoError(t, err)
	require.Equal(t, forrst.ReleaseArguments{Key: "lock:billing:report", Owner: owner}, a)
}

func TestForrstOtherExtensionsAreLeftAlone(t *testing.T) {
	text := strings.Replace(chargeRequest, `"extensions":[`,
		`"context":{"caller":"x"},"extensions":[{"urn":"urn:forrst:ext:tracing","options":{"trace_id":"t"}},`+
			`{"urn":"urn:forrst:ext:other"},`, 1)
	r, o := request(t, text)
	require.Len(t, r.Extensions, 3)
	require.Equal(t, "user:123", o.Key)
}

func TestForrstRequestErrorsNameTheField(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(chargeRequest, from, to, 1) }
	for text, field := range map[string]string{
		change(protocol, `"x":1`):                          "protocol",
		change(`"name":"forrst"`, `"name":"json-rpc"`):     "protocol.name",
		change(`"version":"0.1.0"`, `"version":"9.0"`):     "protocol.version",
		change(`"id":"req_001"`, `"id":1`):                 "id",
		change(`"id":"req_001",`, ``):                      "id",
		change(`"id":"req_001"`, `"id":"a","id":"b"`):      "id",
		change(`"function":"payments.charge",`, ``):        "call.function",
		change(`"payments.charge"`, `""`):                  "call.function",
		change(`"arguments":{`, `"arguments":[],"args":{`): "call.arguments",
		change(`"extensions":[`, `"extensions":1,"x":[`):   "extensions",
		change(`"extensions":[`, `"extensions":[7,`):       "extensions[0]",
		change(`"extensions":[`, `"extensions":[{},`):      "extensions[0].urn",
		change(`"options":{`, `"options":7,"x":{`):         "extensions[0].options",
	} {
		_, err := forrst.ParseRequest([]byte(text))
		requireFieldError(t, err, field)
	}
	for text, field := range map[string]string{
		change(`"options":{`, `"x":{`):                           "extensions[0].options",
		change(`"key":"user:123"`, `"key":1`):                    "extensions[0].options.key",
		change(`"key":"user:123"`, `"k":1`):                      "extensions[0].options.k",
		change(`"unit":"second"`, `"unit":"fortnight"`):          "extensions[0].options.ttl.unit",
		change(`}]}`, `},{"urn":"urn:forrst:ext:atomicLock"}]}`): "extensions",
	} {
		r, err := forrst.ParseRequest([]byte(text))
		require.NoError(t, err, text)
		_, err = r.LockOptions()
		requireFieldError(t, err, field)
	}
}

func TestForrstSuccessfulResponseMustReturnTheOwner(t *testing.T) {
	r, o := request(t, chargeRequest)
	o.Owner = owner
	lock, err := forrst.NewLock(o, r.Call.Function, now)
	require.NoError(t, err)
	reply := r.Reply(json.RawMessage(`{"charge_id":"ch_abc","status":"succeeded"}`))
	reply.Extensions = []forrst.Extension{{URN: forrst.URN, Data: o.Granted(lock)}}
	requireJSON(t, `{`+protocol+`,"id":"req_001","result":{"charge_id":"ch_abc","status":"succeeded"},`+
		`"extensions":[{"urn":"urn:forrst:ext:atomicLock","data":{"key":"user:123","acquired":true,`+
		`"owner":"`+owner+`","scope":"function","expires_at":"2024-03-15T10:30:30Z"}}]}`, reply)
}

func TestForrstAcquisitionFailedResponse(t *testing.T) {
	r, o := request(t, strings.Replace(chargeRequest, "req_001", "req_003", 1))
	key, err := o.FullKey(r.Call.Function)
	require.NoError(t, err)
	reply := r.Reply(nil)
	reply.Errors = []*forrst.Error{forrst.NewAcquisitionFailed(o, key)}
	reply.Extensions = []forrst.Extension{{URN: forrst.URN, Data: o.Refused()}}
	requireJSON(t, `{`+protocol+`,"id":"req_003","result":null,"errors":[{"code":"LOCK_ACQUISITION_FAILED",`+
		`"message":"Unable to acquire lock","details":{"key":"user:123","scope":"function",`+
		`"full_key":"lock:payments.charge:user:123"}}],"extensions":[{"urn":"urn:forrst:ext:atomicLock",`+
		`"data":{"key":"user:123","acquired":false}}]}`, reply)
}

func TestForrstTimeoutResponse(t *testing.T) {
	r, o := request(t, strings.Replace(reportRequest, "req_002", "req_004", 1))
	key, err := o.FullKey(r.Call.Function)
	require.NoError(t, err)
	reply := r.Reply(nil)
	reply.Errors = []*forrst.Error{forrst.NewTimeout(o, key)}
	requireJSON(t, `{`+protocol+`,"id":"req_004","result":null,"errors":[{"code":"LOCK_TIMEOUT",`+
		`"message":"Lock acquisition timed out after 5 seconds","details":{"key":"billing:report",`+
		`"scope":"global","full_key":"lock:billing:report","waited":{"value":5,"unit":"second"}}}]}`, reply)
}

func TestForrstOwnershipMismatchResponse(t *testing.T) {
	r, _ := request(t, releaseRequest)
	reply := r.Reply(nil)
	reply.Errors = []*forrst.Error{forrst.NewOwnershipMismatch("lock:billing:report")}
	requireJSON(t, `{`+protocol+`,"id":"req_release","result":null,"errors":[{`+
		`"code":"LOCK_OWNERSHIP_MISMATCH","message":"Lock is owned by a different process",`+
		`"details":{"key":"lock:billing:report"}}]}`, reply)
}

func TestForrstErrorCodes(t *testing.T) {
	for code, retryable := range map[forrst.Code]bool{
		"LOCK_ACQUISITION_FAILED": true,
		"LOCK_TIMEOUT":            true,
		"LOCK_NOT_FOUND":          false,
		"LOCK_OWNERSHIP_MISMATCH": false,
		"LOCK_ALREADY_RELEASED":   false,
	} {
		require.Equal(t, retryable, code.Retryable(), code)
	}
	require.Equal(t, forrst.NotFound, forrst.NewNotFound("lock:x").Code)
	require.EqualError(t, forrst.NewAlreadyReleased("lock:x"), "LOCK_ALREADY_RELEASED: Lock was already released")
}

func TestForrstSystemFunctionNames(t *testing.T) {
	const prefix = "urn:cline:forrst:ext:atomic-lock:fn:"
	require.Equal(t, prefix+"release", forrst.ReleaseFunction)
	require.Equal(t, prefix+"force-release", forrst.ForceReleaseFunction)
	require.Equal(t, prefix+"status", forrst.StatusFunction)
}

func TestForrstSystemFunctionArguments(t *testing.T) {
	a, err := forrst.ParseKeyArguments([]byte(`{"key":"lock:billing:report"}`))
	require.NoError(t, err)
	require.Equal(t, "lock:billing:report", a.Key)
	for text, field := range map[string]string{
		``:           "arguments",
		`[]`:         "arguments",
		`{}`:         "key",
		`{"key":""}`: "key",
		`{"key":"` + strings.Repeat("k", 256) + `"}`: "key",
	} {
		_, err := forrst.ParseKeyArguments([]byte(text))
		requireFieldError(t, err, field)
	}
	for text, field := range map[string]string{
		``:                          "arguments",
		`{"key":"k"}`:               "owner",
		`{"owner":"o"}`:             "key",
		`{"key":"k","owner":""}`:    "owner",
		`{"key":"","owner":"o"}`:    "key",
		`{"key":"k","owner":["o"]}`: "owner",
	} {
		_, err := forrst.ParseReleaseArguments([]byte(text))
		requireFieldError(t, err, field)
	}
}

func TestForrstSystemFunctionResults(t *testing.T) {
	requireJSON(t, `{"released":true,"key":"lock:payments.charge:user:123"}`,
		forrst.ReleaseResult{Released: true, Key: "lock:payments.charge:user:123"})
	requireJSON(t, `{"released":true,"key":"lock:billing:report","forced":true}`,
		forrst.ForceReleaseResult{Released: true, Key: "lock:billing:report", Forced: true})

	const key = "lock:payments.charge:user:123"
	lock := &forrst.Lock{
		URN: forrst.URN, Key: key, Owner: "uuid-abc-123",
		AcquiredAt: now.Add(-30 * time.Minute), ExpiresAt: now,
	}
	requireJSON(t, `{"key":"`+key+`","locked":true,"owner":"uuid-abc-123",`+
		`"acquired_at":"2024-03-15T10:00:00Z","expires_at":"2024-03-15T10:30:00Z","ttl_remaining":1200}`,
		forrst.StatusOf(key, lock, now.Add(-20*time.Minute)))
	require.EqualValues(t, 1, forrst.StatusOf(key, lock, now.Add(-1)).TTLRemaining, "rounded up")
	free := `{"key":"` + key + `","locked":false}`
	requireJSON(t, free, forrst.StatusOf(key, nil, now))
	requireJSON(t, free, forrst.StatusOf(key, lock, now.Add(1)))
	requireJSON(t, `{"key":"billing:report","locked":false,"hint":"give the full key, lock:FUNCTION:billing:report or, `+
		`for the scope global, lock:billing:report"}`, forrst.StatusOf("billing:report", nil, now))
}

func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{chargeRequest, reportRequest, releaseRequest} {
		f.Add([]byte(seed))
	}
	fuzzing.Run(f, func(t *testing.T, body []byte) {
		r, err := forrst.ParseRequest(body)
		if err != nil {
			return
		}
		o, err := r.LockOptions()
		if err != nil || o == nil {
			return
		}
		key, err := o.FullKey(r.Call.Function)
		if err != nil {
			return
		}
		lock, err := forrst.NewLock(o, r.Call.Function, now)
		require.NoError(t, err)
		require.Equal(t, key, lock.Key)
	})
}
