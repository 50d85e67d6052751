package semaphore_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/formats/semaphore"
	"lockfs/test/fuzzing"
)

const example = "pid=12345\ntimestamp=1703520000\ntag=deploy-v1.2.3\n"

var taken = time.Unix(1703520000, 0).UTC()

func parse(t testing.TB, content string) *semaphore.Lock {
	t.Helper()
	l, err := semaphore.Parse([]byte(content))
	require.NoError(t, err, "%q", content)
	return l
}

func requireFieldError(t testing.TB, err error, field string) {
	t.Helper()
	var fieldError *lockfact.FieldError
	require.ErrorAs(t, err, &fieldError)
	require.Equal(t, field, fieldError.Field)
}

func ExampleLock_Stale() {
	lock, err := semaphore.Parse([]byte("pid=12345\ntimestamp=1703520000\n"))
	fmt.Println(lock.Stale(time.Unix(1703524000, 0), semaphore.DefaultStaleTimeout), err)
	// Output: true <nil>
}

func TestSemaphoreExampleRoundTrips(t *testing.T) {
	l := parse(t, example)
	require.Equal(t, &semaphore.Lock{PID: 12345, Timestamp: 1703520000, Tag: "deploy-v1.2.3"}, l)
	require.Equal(t, taken, l.Time())
	text, err := l.Render()
	require.NoError(t, err)
	require.Equal(t, example, string(text))
}

func TestSemaphoreShellExampleParses(t *testing.T) {
	l := parse(t, "pid=4711\ntimestamp=1703520000\ntag=shell-script\n")
	require.Equal(t, "shell-script", l.Tag)
}

func TestSemaphoreTagIsOptional(t *testing.T) {
	l := parse(t, "pid=12345\ntimestamp=1703520000\n")
	text, err := l.Render()
	require.NoError(t, err)
	require.Equal(t, "pid=12345\ntimestamp=1703520000\n", string(text))
	require.Empty(t, parse(t, "pid=12345\ntimestamp=1703520000\ntag=\n").Tag)
}

func TestSemaphorePIDAndTimestampAreRequired(t *testing.T) {
	for content, field := range map[string]string{
		"":                                   "pid",
		"\n\n":                               "pid",
		"timestamp=1703520000\n":             "pid",
		"pid=12345\n":                        "timestamp",
		"pid=\ntimestamp=1703520000\n":       "pid",
		"pid=12345\ntimestamp=\n":            "timestamp",
		"PID=12345\ntimestamp=1703520000\n":  "pid",
		"pid=12345\nTimestamp=1703520000\n":  "timestamp",
		"pid=12345\ntimestamp =1703520000\n": "timestamp",
	} {
		_, err := semaphore.Parse([]byte(content))
		requireFieldError(t, err, field)
	}
}

func TestSemaphorePIDAndTimestampAreIntegersInRange(t *testing.T) {
	for _, pid := range []string{"0", "-1", "x", "1.5", "+1", "0x10", "2147483648", "99999999999999999999", "1 2"} {
		_, err := semaphore.Parse([]byte("pid=" + pid + "\ntimestamp=1703520000\n"))
		requireFieldError(t, err, "pid")
	}
	for _, ts := range []string{
		"-1", "x", "1703520000.5", "+1703520000", "1e9", "1703520000000", "99999999999999999999",
		"2023-12-25T16:00:00Z",
	} {
		_, err := semaphore.Parse([]byte("pid=12345\ntimestamp=" + ts + "\n"))
		requireFieldError(t, err, "timestamp")
	}
}

func TestSemaphoreRule1OneFieldPerLine(t *testing.T) {
	for _, content := range []string{
		"pid=12345 timestamp=1703520000\n",
		"pid=12345\rtimestamp=1703520000\r",
	} {
		_, err := semaphore.Parse([]byte(content))
		require.Error(t, err, content)
	}
}

func TestSemaphoreRule2LinesEndWithLFOrCRLF(t *testing.T) {
	want := parse(t, example)
	require.Equal(t, want, parse(t, strings.ReplaceAll(example, "\n", "\r\n")))
	require.Equal(t, want, parse(t, strings.Replace(example, "\n", "\r\n", 1)))
}

func TestSemaphoreRule2LastLineMayLackItsEnd(t *testing.T) {
	require.Equal(t, parse(t, example), parse(t, strings.TrimSuffix(example, "\n")))
	require.Equal(t, taken, parse(t, "pid=12345\ntimestamp=1703520000").Time())
	require.Equal(t, 12345, parse(t, "timestamp=1703520000\npid=12345").PID)
}

// The beginning of a timestamp is a time long ago: half a file would be a stale lock.
func TestSemaphoreRule2HalfATimestampIsNotATimestamp(t *testing.T) {
	whole := "pid=12345\ntimestamp=1703520000\n"
	for cut := range len(whole) - 1 {
		_, err := semaphore.Parse([]byte(whole[:cut]))
		require.Error(t, err, whole[:cut])
	}
	require.Zero(t, parse(t, "pid=1\ntimestamp=0\n").Timestamp, "a whole line is believed")
}

func TestSemaphoreRule3NoSpacesAroundEqualsSign(t *testing.T) {
	for content, field := range map[string]string{
		"pid =12345\ntimestamp=1703520000\n":           "pid",
		"pid= 12345\ntimestamp=1703520000\n":           "pid",
		"pid=12345\ntimestamp = 1703520000\n":          "timestamp",
		"pid=12345\ntimestamp=1703520000\ntag= x\n":    "tag",
		"pid=12345\ntimestamp=1703520000\ntag\t=x\n":   "tag",
		"pid=12345\ntimestamp=1703520000\ntag=\tx\r\n": "tag",
	} {
		_, err := semaphore.Parse([]byte(content))
		requireFieldError(t, err, field)
	}
	require.Equal(t, "a b = c", parse(t, "pid=1\ntimestamp=1703520000\ntag=a b = c\n").Tag)
}

// What the specification's own Python reads as a lock is one: it strips each line, and skips those without "=".
func TestSemaphoreParsesLikeItsPython(t *testing.T) {
	for _, content := range []string{
		"pid=12345 \ntimestamp=1703520000\t\ntag=deploy-v1.2.3  \r\n", "  pid=12345\n\ttimestamp=1703520000\ntag=deploy-v1.2.3\n",
		"# taken by hand\n" + example, example + "no field\n", "pid=12345\n   \ntimestamp=1703520000\n=x\ntag=deploy-v1.2.3",
		example + "half a li", "[lock]\n" + example,
	} {
		require.True(t, semaphore.IsMarked([]byte(content)), "%q", content)
		require.Equal(t, parse(t, example), parse(t, content), "%q", content)
	}
	require.Equal(t, "v1", semaphore.New(" v1 ", taken).Tag)
	for _, half := range []string{"pid=1\ntimestamp=17035 ", "pid=1\n timestamp=1703", "pid=1\ntimestamp"} {
		_, err := semaphore.Parse([]byte(half))
		requireFieldError(t, err, "timestamp")
		require.False(t, semaphore.IsMarked([]byte(half)), half)
	}
}

func TestSemaphoreRule4UnknownFieldsAreIgnoredAndKept(t *testing.T) {
	l := parse(t, "host=n1\npid=12345\nPid=\ntimestamp=1703520000\nx=a=b\nx=again\n")
	require.Equal(t, 12345, l.PID)
	require.Equal(t, []semaphore.Field{{"host", "n1"}, {"Pid", ""}, {"x", "a=b"}, {"x", "again"}}, l.Unknown)
	text, err := l.Render()
	require.NoError(t, err)
	require.Equal(t, "pid=12345\ntimestamp=1703520000\nhost=n1\nPid=\nx=a=b\nx=again\n", string(text))
}

func TestSemaphoreRule5EmptyLinesAreIgnored(t *testing.T) {
	require.Equal(t, parse(t, example), parse(t, "\n\r\n"+strings.ReplaceAll(example, "\n", "\n\n\r\n")))
}

func TestSemaphoreRule6EncodingIsUTF8(t *testing.T) {
	require.Equal(t, "Übergabe 引き継ぎ", parse(t, "pid=1\ntimestamp=1703520000\ntag=Übergabe 引き継ぎ\n").Tag)
	_, err := semaphore.Parse([]byte("pid=1\ntimestamp=1703520000\ntag=\xdcbergabe\n"))
	require.ErrorContains(t, err, "UTF-8")
}

func TestSemaphoreKnownFieldsMustNotAppearTwice(t *testing.T) {
	for _, field := range []string{"pid=12345", "timestamp=1703520000", "tag=x"} {
		_, err := semaphore.Parse([]byte(example + field + "\n"))
		requireFieldError(t, err, strings.SplitN(field, "=", 2)[0])
	}
}

func TestSemaphoreDefaults(t *testing.T) {
	require.Equal(t, time.Hour, semaphore.DefaultStaleTimeout)
	require.Equal(t, 100*time.Millisecond, semaphore.DefaultRetryInterval)
	require.Equal(t, os.FileMode(0o644), os.FileMode(semaphore.FileMode))
}

// A timestamp was cut to the second, so the lock may have been taken any time in it.
func TestSemaphoreStaleOnlyWhenOlderThanTimeout(t *testing.T) {
	l := parse(t, example)
	const usual, ten = semaphore.DefaultStaleTimeout, 10 * time.Second
	for _, c := range []struct {
		age, timeout time.Duration
		want         bool
	}{
		{-24 * time.Hour, usual, false},
		{3600 * time.Second, usual, false},
		{3601*time.Second - 1, usual, false},
		{3601 * time.Second, usual, true},
		{10 * time.Second, ten, false},
		{11*time.Second - 1, ten, false},
		{11 * time.Second, ten, true},
		{3601 * time.Second, 2 * time.Hour, false},
		{math.MaxInt64, math.MaxInt64, false},
	} {
		require.Equal(t, c.want, l.Stale(taken.Add(c.age), c.timeout), "%v of %v", c.age, c.timeout)
		facts, err := semaphore.FactsOf([]byte(example), lockfact.Origin{})
		require.NoError(t, err)
		if c.age < math.MaxInt64 {
			governed := lockfact.Rule{StaleAfter: c.timeout}.Govern(facts, 0)
			require.Equal(t, c.want, governed.StaleAt(taken.Add(c.age).UnixNano()))
		}
	}
}

func TestSemaphoreFacts(t *testing.T) {
	facts, err := semaphore.FactsOf([]byte(example),
		lockfact.Origin{Host: "n1", ClockOffset: -time.Minute})
	require.NoError(t, err)
	require.Equal(t, lockfact.Facts{
		Format:    lockfact.Semaphore,
		Holder:    "12345",
		Host:      "n1",
		PID:       12345,
		IssuedAt:  taken.Add(time.Minute).UnixNano(),
		ExpiresAt: taken.Add(61*time.Minute + time.Second - 1).UnixNano(),
		Guard:     lockfact.GuardHost,
		OnStale:   lockfact.Keep,
	}, facts)
	_, err = semaphore.FactsOf(nil, lockfact.Origin{})
	require.Error(t, err)
}

func TestSemaphoreNewAndRenderValidate(t *testing.T) {
	l := semaphore.New("nightly", taken.Add(time.Second/2))
	require.Equal(t, &semaphore.Lock{PID: os.Getpid(), Timestamp: taken.Unix(), Tag: "nightly"}, l)
	require.NoError(t, l.Validate())

	for field, change := range map[string]func(*semaphore.Lock){
		"pid":       func(l *semaphore.Lock) { l.PID = 0 },
		"timestamp": func(l *semaphore.Lock) { l.Timestamp = -1 },
		"tag":       func(l *semaphore.Lock) { l.Tag = "a\npid=1" },
		"a=b":       func(l *semaphore.Lock) { l.Unknown = []semaphore.Field{{"a=b", ""}} },
		"":          func(l *semaphore.Lock) { l.Unknown = []semaphore.Field{{"", "x"}} },
		"x":         func(l *semaphore.Lock) { l.Unknown = []semaphore.Field{{"x", "a\nb"}} },
	} {
		bad := *l
		change(&bad)
		_, err := bad.Render()
		requireFieldError(t, err, field)
	}
	l.Unknown = []semaphore.Field{{"pid", "2"}}
	requireFieldError(t, l.Validate(), "pid")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(strings.ReplaceAll(example, "\n", "\r\n") + "\r\nx=y=z"))
	f.Add([]byte("pid=1\ntimestamp=17035200"))
	f.Add([]byte("timestamp=253402300799\npid=2147483647\nx=\r\r\n"))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		l, err := semaphore.Parse(content)
		if err != nil {
			return
		}
		text, err := l.Render()
		require.NoError(t, err)
		again, err := semaphore.Parse(text)
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}
