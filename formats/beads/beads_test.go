package beads_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/beads"
	"lockfs/formats/lockfact"
	"lockfs/test/fuzzing"
)

const example = `{"holder":"vc-executor","pid":12345,"hostname":"dev-machine",` +
	`"started_at":"2025-10-25T12:00:00Z","version":"1.0.0"}`

var started = time.Date(2025, 10, 25, 12, 0, 0, 0, time.UTC)

func parse(t testing.TB, content string) *beads.ExclusiveLock {
	t.Helper()
	e, err := beads.Parse([]byte(content))
	require.NoError(t, err, content)
	return e
}

func requireFieldError(t testing.TB, err error, field string) {
	t.Helper()
	var fieldError *lockfact.FieldError
	require.ErrorAs(t, err, &fieldError)
	require.Equal(t, field, fieldError.Field)
}

func TestBeadsExampleRoundTrips(t *testing.T) {
	e := parse(t, example)
	require.Equal(t, &beads.ExclusiveLock{
		Holder: "vc-executor", PID: 12345, Hostname: "dev-machine", StartedAt: started, Version: "1.0.0",
	}, e)
	text, err := json.Marshal(e)
	require.NoError(t, err)
	require.Equal(t, example, string(text))
	text, err = e.Render()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "{\n  \"holder\": \"vc-executor\",\n"))
	require.Equal(t, e, parse(t, string(text)))
}

func TestBeadsShellExampleParses(t *testing.T) {
	e := parse(t, "{\n  \"holder\": \"my-tool\",\n  \"pid\": 4711,\n  \"hostname\": \"ci-7\",\n"+
		"  \"started_at\": \"2025-10-25T12:00:00Z\",\n  \"version\": \"1.0.0\"\n}\n")
	require.Equal(t, 4711, e.PID)
}

func TestBeadsVersionIsOptional(t *testing.T) {
	for _, member := range []string{``, `,"version":""`, `,"version":null`} {
		e := parse(t, strings.Replace(example, `,"version":"1.0.0"`, member, 1))
		require.Empty(t, e.Version)
	}
}

func TestBeadsRequiredFields(t *testing.T) {
	for field, value := range map[string]string{
		"holder":     `"vc-executor"`,
		"pid":        `12345`,
		"hostname":   `"dev-machine"`,
		"started_at": `"2025-10-25T12:00:00Z"`,
	} {
		member := `"` + field + `":` + value
		for _, bad := range []string{`"x":1`, `"` + field + `":null`, `"` + field + `":[]`, `"` + strings.ToUpper(field) + `":` + value} {
			_, err := beads.Parse([]byte(strings.Replace(example, member, bad, 1)))
			requireFieldError(t, err, field)
		}
		_, err := beads.Parse([]byte(strings.Replace(example, member, member+","+member, 1)))
		requireFieldError(t, err, field)
	}
}

func TestBeadsValidate(t *testing.T) {
	for field, change := range map[string]func(*beads.ExclusiveLock){
		"holder":     func(e *beads.ExclusiveLock) { e.Holder = "" },
		"pid":        func(e *beads.ExclusiveLock) { e.PID = -1 },
		"hostname":   func(e *beads.ExclusiveLock) { e.Hostname = "" },
		"started_at": func(e *beads.ExclusiveLock) { e.StartedAt = time.Time{} },
	} {
		e := parse(t, example)
		require.NoError(t, e.Validate())
		change(e)
		requireFieldError(t, e.Validate(), field)
		_, err := e.Render()
		requireFieldError(t, err, field)
	}
	for field, change := range map[string]func(*beads.ExclusiveLock){
		"holder":   func(e *beads.ExclusiveLock) { e.Holder = "me\xff" },
		"hostname": func(e *beads.ExclusiveLock) { e.Hostname = "\xff" },
		"version":  func(e *beads.ExclusiveLock) { e.Version = "\xff" },
	} {
		e := parse(t, example)
		change(e)
		_, err := e.Render()
		requireFieldError(t, err, field)
		require.ErrorContains(t, err, "UTF-8", "JSON would replace it")
	}
	e := parse(t, example)
	for _, pid := range []int{0, -12345, 1 << 31} {
		e.PID = pid
		requireFieldError(t, e.Validate(), "pid")
	}
	for _, bad := range []string{"2025-10-25", "2025-10-25T12:00:00", "1761393600", ""} {
		_, err := beads.Parse([]byte(strings.Replace(example, "2025-10-25T12:00:00Z", bad, 1)))
		requireFieldError(t, err, "started_at")
	}
	require.Equal(t, -2*3600, zone(parse(t, strings.Replace(example, "12:00:00Z", "12:00:00-02:00", 1)).StartedAt))
}

func zone(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

func TestBeadsNewExclusiveLockIsForThisProcess(t *testing.T) {
	before := time.Now()
	e, err := beads.NewExclusiveLock("my-tool", "2.0")
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, "my-tool", e.Holder)
	require.Equal(t, os.Getpid(), e.PID)
	require.Equal(t, host, e.Hostname)
	require.Equal(t, "2.0", e.Version)
	require.WithinRange(t, e.StartedAt, before, time.Now())
	require.NoError(t, e.Validate())
}

func TestBeadsFacts(t *testing.T) {
	facts := func(written lockfact.Origin) lockfact.Facts {
		f, err := beads.FactsOf([]byte(example), written)
		require.NoError(t, err)
		return f
	}
	here := lockfact.Facts{
		Format:   lockfact.Beads,
		Holder:   "vc-executor",
		Host:     "n1",
		PID:      12345,
		IssuedAt: started.UnixNano(),
		Guard:    lockfact.GuardHost,
		OnStale:  lockfact.Remove,
	}
	require.Equal(t, here, facts(lockfact.Origin{Host: "n1", Hostname: "DEV-Machine"}))
	require.True(t, here.ByProcess())

	elsewhere := here
	elsewhere.PID = 0
	require.Equal(t, elsewhere, facts(lockfact.Origin{Host: "n1"}), "another host's process is not watched here")
	require.Equal(t, elsewhere, facts(lockfact.Origin{Host: "n1", Hostname: "dev-machine.example.org"}))
	require.False(t, elsewhere.ByProcess())

	_, err := beads.FactsOf([]byte("{}"), lockfact.Origin{})
	require.Error(t, err)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(example[:60]))
	f.Add([]byte(strings.Replace(example, "12345", "123456789012345678901234567890", 1)))
	f.Add([]byte(strings.Replace(example, "vc-executor", `\ud800\u0000`, 1)))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		e, err := beads.Parse(content)
		if err != nil {
			return
		}
		text, err := e.Render()
		require.NoError(t, err)
		again, err := beads.Parse(text)
		require.NoError(t, err)
		require.True(t, e.StartedAt.Equal(again.StartedAt))
		e.StartedAt = again.StartedAt
		require.Equal(t, e, again)
	})
}
