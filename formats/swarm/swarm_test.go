package swarm_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/formats/swarm"
	"lockfs/test/fuzzing"
)

const example = `{"task_id":"task-001","worker":"worker-0",` +
	`"acquired_at":"2025-02-02T10:00:00Z","expires_at":"2025-02-02T11:00:00Z"}`

var (
	acquired = time.Date(2025, 2, 2, 10, 0, 0, 0, time.UTC)
	expires  = acquired.Add(time.Hour)
)

func parse(t testing.TB, content string) *swarm.Lock {
	t.Helper()
	l, err := swarm.Parse([]byte(content))
	require.NoError(t, err, content)
	return l
}

func requireFieldError(t testing.TB, err error, field string) {
	t.Helper()
	var fieldError *lockfact.FieldError
	require.ErrorAs(t, err, &fieldError)
	require.Equal(t, field, fieldError.Field)
}

func ExampleLock_ListLine() {
	now := time.Date(2025, 2, 2, 10, 0, 0, 0, time.UTC)
	lock, err := swarm.New("task-001", "worker-0", time.Hour, now)
	fmt.Println(lock.ListLine(now), err)
	// Output: task-001: Active (worker: worker-0, acquired: 2025-02-02T10:00:00Z) <nil>
}

func TestSwarmExampleRoundTripsInTheLayoutOfTheSpecification(t *testing.T) {
	l := parse(t, example)
	require.Equal(t, &swarm.Lock{TaskID: "task-001", Worker: "worker-0", AcquiredAt: acquired, ExpiresAt: expires}, l)
	text, err := l.Render()
	require.NoError(t, err)
	require.Equal(t, "{\n  \"task_id\": \"task-001\",\n  \"worker\": \"worker-0\",\n"+
		"  \"acquired_at\": \"2025-02-02T10:00:00Z\",\n  \"expires_at\": \"2025-02-02T11:00:00Z\"\n}\n", string(text))
}

func TestSwarmPythonLayoutParses(t *testing.T) {
	l := parse(t, `{"task_id": "task-001", "worker": "worker-0", "acquired_at": "2025-02-02T10:00:00.123456+00:00", "expires_at": null}`)
	require.True(t, acquired.Add(123456*time.Microsecond).Equal(l.AcquiredAt))
}

func TestSwarmAllFourFieldsArePresent(t *testing.T) {
	l, err := swarm.New("task-001", "worker-0", 0, acquired)
	require.NoError(t, err)
	text, err := l.Render()
	require.NoError(t, err)
	for _, field := range []string{"task_id", "worker", "acquired_at", "expires_at"} {
		require.Contains(t, string(text), `"`+field+`":`)
	}
	require.Equal(t, l, parse(t, string(text)))
}

func TestSwarmTTLIsOptionalWithoutDefault(t *testing.T) {
	l, err := swarm.New("task-001", "worker-0", 0, acquired)
	require.NoError(t, err)
	require.Zero(t, l.ExpiresAt)
	l, err = swarm.New("task-001", "worker-0", time.Second, acquired.Add(time.Second/2))
	require.NoError(t, err)
	require.Equal(t, acquired, l.AcquiredAt)
	require.Equal(t, acquired.Add(time.Second), l.ExpiresAt, "exactly ttl_seconds later")
	require.Equal(t, swarm.Active, l.Status(acquired.Add(3*time.Second/2)), "for a second at least")
	require.Equal(t, swarm.Active, l.Status(acquired.Add(2*time.Second-1)))
	require.Equal(t, swarm.Expired, l.Status(acquired.Add(2*time.Second)))
	l, err = swarm.New("task-001", "worker-0", time.Millisecond, acquired)
	require.NoError(t, err)
	require.Equal(t, acquired.Add(time.Second), l.ExpiresAt)
	l, err = swarm.New("task-001", "worker-0", math.MaxInt64, acquired)
	require.NoError(t, err)
	require.Equal(t, 2317, l.ExpiresAt.Year())
	_, err = swarm.New("task-001", "worker-0", -time.Second, acquired)
	requireFieldError(t, err, "ttl_seconds")
}

func TestSwarmNeverExpiresWithoutExpiresAt(t *testing.T) {
	for _, member := range []string{``, `,"expires_at":""`, `,"expires_at":null`} {
		content := `{"task_id":"t","worker":"w","acquired_at":"2025-02-02T10:00:00Z"` + member + `}`
		later := acquired.AddDate(500, 0, 0)
		require.Equal(t, swarm.Active, parse(t, content).Status(later))
		facts, err := swarm.FactsOf([]byte(content), lockfact.Origin{})
		require.NoError(t, err)
		require.Zero(t, facts.ExpiresAt)
	}
}

func TestSwarmRequiredFields(t *testing.T) {
	for content, field := range map[string]string{
		`{}`:                           "task_id",
		`{"task_id":"t"}`:              "worker",
		`{"task_id":"t","worker":"w"}`: "acquired_at",
		`{"task_id":1,"worker":"w"}`:   "task_id",
		`{"task_id":"t","worker":["w"],"acquired_at":"2025-02-02T10:00:00Z"}`:           "worker",
		`{"task_id":"t","worker":"","acquired_at":"2025-02-02T10:00:00Z"}`:              "worker",
		`{"task_id":"t","worker":"a\nb","acquired_at":"2025-02-02T10:00:00Z"}`:          "worker",
		`{"task_id":"t","worker":"w","acquired_at":"2025-02-02"}`:                       "acquired_at",
		`{"task_id":"t","worker":"w","acquired_at":1738490400}`:                         "acquired_at",
		`{"task_id":"t","task_id":"u","worker":"w"}`:                                    "task_id",
		`{"Task_id":"t","worker":"w","acquired_at":"2025-02-02T10:00:00Z"}`:             "task_id",
		strings.Replace(example, `"2025-02-02T11:00:00Z"`, `"tomorrow"`, 1):             "expires_at",
		strings.Replace(example, `"2025-02-02T11:00:00Z"`, `" "`, 1):                    "expires_at",
		strings.Replace(example, `"2025-02-02T11:00:00Z"`, `"2025-02-02T11:00:00"`, 1):  "expires_at",
		strings.Replace(example, `"2025-02-02T11:00:00Z"`, `1738494000`, 1):             "expires_at",
		strings.Replace(example, `"2025-02-02T11:00:00Z"`, `"2025-02-30T11:00:00Z"`, 1): "expires_at",
	} {
		_, err := swarm.Parse([]byte(content))
		requireFieldError(t, err, field)
	}
	for cut := range len(example) {
		_, err := swarm.Parse([]byte(example[:cut]))
		require.Error(t, err)
	}
}

func TestSwarmTaskIDsAreFileNames(t *testing.T) {
	for _, id := range []string{"task-001", "Task 1", "13.01", "任务", "a:b", strings.Repeat("x", 250)} {
		require.NoError(t, swarm.ValidateTaskID(id), id)
	}
	for _, id := range []string{
		"", ".", "..", "../etc", "a/b", "/a", `a\b`, ".hidden", "a\x00", "a\n", "a\xff", strings.Repeat("x", 251),
	} {
		requireFieldError(t, swarm.ValidateTaskID(id), "task_id")
	}
	require.Equal(t, "task-001.lock", swarm.FileName("task-001"))
	require.Len(t, swarm.FileName(strings.Repeat("x", 250)), 255)
}

func TestSwarmStatusWords(t *testing.T) {
	l := parse(t, example)
	for now, want := range map[time.Time]swarm.Status{
		acquired:                     "Active",
		expires:                      "Active",
		expires.Add(time.Second - 1): "Active",
		expires.Add(time.Second):     "Expired",
		acquired.AddDate(0, 0, -1):   "Active",
	} {
		require.Equal(t, want, l.Status(now))
	}
	require.Equal(t, "No lock for task-001", swarm.NoLock("task-001"))
	require.Equal(t, "task-001: Expired (worker: worker-0, acquired: 2025-02-02T10:00:00Z)",
		l.ListLine(expires.Add(time.Second)))
	require.Equal(t, "task-001: Active\n  worker: worker-0\n  acquired_at: 2025-02-02T10:00:00Z\n"+
		"  expires_at: 2025-02-02T11:00:00Z\n", l.Details(acquired))
	l.ExpiresAt = time.Time{}
	require.NotContains(t, l.Details(acquired), "expires_at")
}

func TestSwarmReleaseNeedsTaskAndWorker(t *testing.T) {
	l := parse(t, example)
	require.NoError(t, l.CheckOwner("task-001", "worker-0"))
	require.EqualError(t, l.CheckOwner("task-001", "worker-1"), "task-001 is locked by worker-0, not by worker-1")
	require.EqualError(t, l.CheckOwner("task-002", "worker-0"), "the lock of task-002 is for task task-001")
	var owner *swarm.OwnerError
	require.ErrorAs(t, l.CheckOwner("task-001", "Worker-0"), &owner)
}

func TestSwarmFacts(t *testing.T) {
	facts, err := swarm.FactsOf([]byte(example), lockfact.Origin{Host: "n1", ClockOffset: time.Second})
	require.NoError(t, err)
	require.Equal(t, lockfact.Facts{
		Format:    lockfact.Swarm,
		Holder:    "worker-0",
		Host:      "n1",
		IssuedAt:  acquired.Add(-time.Second).UnixNano(),
		ExpiresAt: expires.UnixNano() - 1, // at the latest
		Guard:     lockfact.GuardAnyone,
		OnStale:   lockfact.Keep,
	}, facts)

	epoch := strings.Replace(example, "2025-02-02T11", "1970-01-01T00", 1)
	facts, err = swarm.FactsOf([]byte(epoch), lockfact.Origin{})
	require.NoError(t, err)
	require.Equal(t, int64(time.Second-1), facts.ExpiresAt)
	epoch = strings.Replace(example, "2025-02-02T11:00:00Z", "1969-12-31T23:59:59.000000001Z", 1)
	facts, err = swarm.FactsOf([]byte(epoch), lockfact.Origin{ClockOffset: 1 - time.Second})
	require.NoError(t, err)
	require.EqualValues(t, 1, facts.ExpiresAt, "0 would be never")
	require.True(t, facts.StaleAt(acquired.UnixNano()))
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"task_id":"t","worker":"w","acquired_at":"0001-01-02T00:00:00+23:59","expires_at":""}`))
	f.Add([]byte(`{"task_id":"t","worker":"w","acquired_at":"9999-12-31T23:59:59.999999999-23:59"}`))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		l, err := swarm.Parse(content)
		if err != nil {
			return
		}
		text, err := l.Render()
		require.NoError(t, err)
		again, err := swarm.Parse(text)
		require.NoError(t, err)
		require.Equal(t, l.ListLine(acquired), again.ListLine(acquired))
		require.True(t, l.ExpiresAt.Equal(again.ExpiresAt))
	})
}
