package tower_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/formats/tower"
)

// example is the lock of section 3.1, on one line.
const example = `{"lock_version":"v1","lock_name":"money-tracker-production",` +
	`"request_id":"req_abc123def456","actor":"claude-code","intent":"deploy-app",` +
	`"intent_version":"1.2.0","host_id":"tower-01","pid":12345,` +
	`"created_at":"2025-12-18T10:30:10Z","last_heartbeat_at":"2025-12-18T10:30:40Z",` +
	`"ttl_seconds":900,"metadata":{}}`

func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, "2025-12-18T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// with gives the example with one member set to a JSON value, or without it if the value is empty.
func with(t testing.TB, name, value string) []byte {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(example), &members))
	if value == "" {
		delete(members, name)
	} else {
		members[name] = json.RawMessage(value)
	}
	content, err := json.Marshal(members)
	require.NoError(t, err)
	return content
}

func requireFieldError(t testing.TB, err error, field string) {
	t.Helper()
	var fieldError *lockfact.FieldError
	require.ErrorAs(t, err, &fieldError)
	require.Equal(t, field, fieldError.Field)
}

func TestTower31ExampleParsesAndRendersInOrder(t *testing.T) {
	l, err := tower.Parse([]byte(example))
	require.NoError(t, err)
	require.Equal(t, &tower.Lock{
		LockVersion:     "v1",
		LockName:        "money-tracker-production",
		RequestID:       "req_abc123def456",
		Actor:           "claude-code",
		Intent:          "deploy-app",
		IntentVersion:   "1.2.0",
		HostID:          "tower-01",
		PID:             12345,
		CreatedAt:       at("10:30:10"),
		LastHeartbeatAt: at("10:30:40"),
		TTLSeconds:      900,
		Metadata:        json.RawMessage("{}"),
	}, l)

	text, err := l.Render()
	require.NoError(t, err)
	require.Equal(t, example, compact(t, text))
	require.True(t, strings.HasPrefix(string(text), "{\n  \"lock_version\": \"v1\",\n"))
	require.True(t, strings.HasSuffix(string(text), "\"metadata\": {}\n}\n"))
}

func compact(t testing.TB, text []byte) string {
	t.Helper()
	var v strings.Builder
	dec := json.NewDecoder(strings.NewReader(string(text)))
	var raw json.RawMessage
	require.NoError(t, dec.Decode(&raw))
	enc := json.NewEncoder(&v)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(raw))
	return strings.TrimSuffix(v.String(), "\n")
}

func TestTower31LocksMustContainValidJSON(t *testing.T) {
	for name, content := range map[string]string{
		"empty":            "",
		"half":             example[:len(example)/2],
		"all but the last": example[:len(example)-1],
		"followed":         example + "{}",
		"an array":         "[" + example + "]",
		"a string":         `"v1"`,
		"null":             "null",
		"trailing comma":   strings.Replace(example, "{}}", "{},}", 1),
		"byte order mark":  "\ufeff" + example,
		"not UTF-8":        strings.Replace(example, "deploy", "depl\xff", 1),
		"zero bytes":       strings.Repeat("\x00", 300),
		"member twice":     strings.Replace(example, `"pid":12345`, `"pid":1,"pid":12345`, 1),
		"escaped twice":    strings.Replace(example, `"pid":12345`, `"p\u0069d":1,"pid":12345`, 1),
		"other case":       strings.Replace(example, `"lock_version"`, `"Lock_Version"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tower.Parse([]byte(content))
			require.Error(t, err)
		})
	}
}

func TestTower32EveryRequiredFieldMustBeThere(t *testing.T) {
	for _, field := range []string{
		"lock_version", "lock_name", "request_id", "actor", "intent", "intent_version", "host_id",
		"pid", "created_at", "last_heartbeat_at", "ttl_seconds",
	} {
		t.Run(field, func(t *testing.T) {
			for _, value := range []string{"", "null", "[]", `{"a":1}`, "true"} {
				_, err := tower.Parse(with(t, field, value))
				requireFieldError(t, err, field)
			}
		})
	}
}

func TestTower32RequiredStringsMustNotBeEmpty(t *testing.T) {
	for _, field := range []string{
		"lock_version", "lock_name", "request_id", "actor", "intent", "intent_version", "host_id",
		"created_at", "last_heartbeat_at",
	} {
		_, err := tower.Parse(with(t, field, `""`))
		requireFieldError(t, err, field)
	}
}

func TestTower32LockVersionIsAlwaysV1(t *testing.T) {
	for _, version := range []string{`"v2"`, `"V1"`, `"1"`, `1`, `"v1 "`} {
		_, err := tower.Parse(with(t, "lock_version", version))
		requireFieldError(t, err, "lock_version")
	}
}

func TestTower32IntegersAreInRange(t *testing.T) {
	for _, c := range []struct{ field, value string }{
		{"pid", "0"},
		{"pid", "-1"},
		{"pid", "1.5"},
		{"pid", "1e3"},
		{"pid", `"12345"`},
		{"pid", "2147483648"},
		{"pid", "123456789012345678901234567890"},
		{"ttl_seconds", "0"},
		{"ttl_seconds", "-900"},
		{"ttl_seconds", "900.5"},
		{"ttl_seconds", `"900"`},
		{"ttl_seconds", "9223372036854775808"},
	} {
		_, err := tower.Parse(with(t, c.field, c.value))
		requireFieldError(t, err, c.field)
	}
}

func TestTower32TimestampsAreISO8601InUTC(t *testing.T) {
	for _, field := range []string{"created_at", "last_heartbeat_at"} {
		for _, good := range []string{
			"2025-12-18T10:30:10Z", "2025-12-18T10:30:10.250Z", "2025-12-18T10:30:10+00:00",
		} {
			_, err := tower.Parse(with(t, field, `"`+good+`"`))
			require.NoError(t, err, good)
		}
		for _, bad := range []string{
			"2025-12-18T10:30:10+01:00", "2025-12-18T10:30:10", "2025-12-18 10:30:10Z", "2025-12-18",
			"2025-13-18T10:30:10Z", "2025-12-18T25:30:10Z", "2025-12-18T1:30:10Z", "1766053810",
			"2025-12-18T10:30:10,5Z", "now", " 2025-12-18T10:30:10Z", "12025-12-18T10:30:10Z",
		} {
			_, err := tower.Parse(with(t, field, `"`+bad+`"`))
			requireFieldError(t, err, field)
		}
	}
}

func TestTower32MetadataIsAnOptionalObject(t *testing.T) {
	for _, good := range []string{"", "null", "{}", `{"ticket":"OPS-1","deep":{"a":[1,2]}}`} {
		_, err := tower.Parse(with(t, "metadata", good))
		require.NoError(t, err, good)
	}
	for _, bad := range []string{"[]", `"x"`, "1", "true"} {
		_, err := tower.Parse(with(t, "metadata", bad))
		requireFieldError(t, err, "metadata")
	}
	l, err := tower.Parse([]byte(example))
	require.NoError(t, err)
	for _, bad := range []string{"", "{", "[]", "{}{}"} {
		l.Metadata = json.RawMessage(bad)
		requireFieldError(t, l.Validate(), "metadata")
	}
}

func TestTowerParseKeepsNothingOfTheContent(t *testing.T) {
	content := with(t, "metadata", `{"a":1}`)
	l, err := tower.Parse(content)
	require.NoError(t, err)
	clear(content)
	require.Equal(t, `{"a":1}`, string(l.Metadata))
}

func TestTower33DefaultTTLIs900Seconds(t *testing.T) {
	now := at("10:30:10.9")
	l, err := tower.New("nightly", "req_1", "backup", "1.0.0", now)
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.EqualValues(t, 900, l.TTLSeconds)
	require.Equal(t, "unknown", l.Actor)
	require.Equal(t, host, l.HostID)
	require.Equal(t, os.Getpid(), l.PID)
	require.Equal(t, at("10:30:10"), l.CreatedAt, "in whole seconds, for tools that know no others")
	require.Equal(t, l.CreatedAt, l.LastHeartbeatAt)

	text, err := l.Render()
	require.NoError(t, err)
	again, err := tower.Parse(text)
	require.NoError(t, err)
	require.Equal(t, l, again)
}

func TestTowerRenderRefusesAnInvalidLock(t *testing.T) {
	_, err := tower.New("Nightly", "req_1", "backup", "1.0.0", at("10:30:10"))
	requireFieldError(t, err, "lock_name")
	_, err = (&tower.Lock{}).Render()
	requireFieldError(t, err, "lock_version")
}

func TestTowerTextIsNotEscapedForHTML(t *testing.T) {
	l, err := tower.Parse(with(t, "intent", `"<a> & b"`))
	require.NoError(t, err)
	text, err := l.Render()
	require.NoError(t, err)
	require.Contains(t, string(text), `"<a> & b"`)
}
