package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// plan is a short one.
func plan(dir string) Plan {
	return Plan{Dir: dir, Workers: 2, Duration: 5 * time.Millisecond, Progress: func(string, int, int) {}}
}

func requireEmpty(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestEverythingIsMeasured(t *testing.T) {
	dir := t.TempDir()
	p := plan(dir)
	var begun []string
	p.Progress = func(measurement string, number, of int) {
		begun = append(begun, measurement)
		require.Equal(t, len(begun), number)
		require.Equal(t, len(all), of)
	}
	report, err := Run(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, names(), begun)
	require.Equal(t, 2, report.Workers)
	require.Len(t, report.Results, len(all))
	for i, r := range report.Results {
		require.Equal(t, all[i].name, r.Measurement)
		require.Empty(t, r.Error)
		require.Positive(t, r.Count)
		require.Positive(t, r.Median)
		require.GreaterOrEqual(t, r.P99, r.Median)
		require.Equal(t, i < 6, r.PerSecond > 0, "handovers have pauses")
	}
	requireEmpty(t, dir)
}

// TestLocksThatDoNotExclude has two sides that lock different files.
func TestLocksThatDoNotExclude(t *testing.T) {
	for _, newSide := range []func(place, *atomic.Bool) (side, error){newFlocker, newCreator} {
		f, err := openFolder(t.TempDir())
		require.NoError(t, err)
		sides := 0
		_, _, err = byHandover(func(p place, over *atomic.Bool) (side, error) {
			sides++
			return newSide(f.place(p.name+string(rune('0'+sides))), over)
		})(t.Context(), f, plan(""))
		require.ErrorIs(t, err, errNotExclusive)
		require.True(t, isAnswer(err))
		f.close()
	}
}

func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	interrupt := errors.New("interrupted by the test")
	for _, m := range all {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		p := plan(dir)
		p.Duration, p.Only = MaxDuration, []string{m.name}
		p.Progress = func(string, int, int) {
			time.AfterFunc(5*time.Millisecond, func() { cancel(interrupt) })
		}
		_, err := Run(ctx, p)
		require.ErrorIs(t, err, interrupt, m.name)
		requireEmpty(t, dir)
	}
}

// TestAFailureEndsTheRun has the directory disappear before the workers begin.
func TestAFailureEndsTheRun(t *testing.T) {
	for _, m := range all {
		dir := t.TempDir()
		p := plan(dir)
		p.Only = []string{m.name}
		p.Progress = func(string, int, int) {
			below, err := filepath.Glob(filepath.Join(dir, "*"))
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(below[0]))
		}
		_, err := Run(t.Context(), p)
		require.ErrorIs(t, err, unix.ENOENT, m.name)
		require.ErrorContains(t, err, m.name+" in "+dir)
		requireEmpty(t, dir)
	}
}

func TestWrongPlans(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		change func(*Plan)
		text   string
	}{
		{func(p *Plan) { p.Dir = file }, "not a directory"},
		{func(p *Plan) { p.Dir = dir + "/missing" }, "missing: no such file or directory"},
		{func(p *Plan) { p.Workers = 0 }, "0 workers"},
		{func(p *Plan) { p.Workers = MaxWorkers + 1 }, "1 to 1000"},
		{func(p *Plan) { p.Duration = 0 }, "more than 0"},
		{func(p *Plan) { p.Duration = time.Hour }, "at most 1m0s"},
		{func(p *Plan) { p.Only = []string{"cycle", "x"} }, `no measurement "x", but cycle, `},
	} {
		p := plan(dir)
		c.change(&p)
		_, err := Run(t.Context(), p)
		require.ErrorContains(t, err, c.text)
	}
	requireEmpty(t, dir)
}

func TestQuantiles(t *testing.T) {
	var took []time.Duration
	for i := range 101 {
		took = append(took, time.Duration(100-i)*time.Microsecond)
	}
	require.Equal(t, Result{Measurement: "cycle", Count: 101, Median: 50, P99: 99, PerSecond: 1}, resultOf("cycle", took, 101*time.Second))
}

func TestPrintReport(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printReport(&out, &Report{
		Version: "v1", Directory: "/a\n", Cores: 2, Workers: 3, Seconds: 0.5,
		Results: []Result{
			{Measurement: "cycle", Count: 9, Median: 21.04, P99: 999.6, PerSecond: 40000.4},
			{Measurement: "stat", Count: 9, Median: 2504, P99: 1.2e6, PerSecond: 398.7},
			{Measurement: "flock", Error: "no locks available"},
			{Measurement: "handover-flock", Count: 9, Median: 1, P99: 2},
		},
	}))
	require.Equal(t, `lockfs v1 in "/a\n", 2 cores; 3 workers, 0.5s for each figure

MEASUREMENT     MEDIAN  P99    PER SECOND
cycle           21 us   1 ms   40000
stat            2.5 ms  1.2 s  399
flock                            no locks available
handover-flock  1 us    2 us   
`, out.String())
}

func TestBenchCommand(t *testing.T) {
	dir := t.TempDir()
	cmd := Command()
	var out, progress bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&progress)
	cmd.SetArgs([]string{dir, "--json", "--duration", "1ms", "--only", "stat,cycle"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	var report Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	require.Len(t, report.Results, 2)
	require.NotEmpty(t, report.Version)
	require.Equal(t, "1 of 2: stat\n2 of 2: cycle\n", progress.String())
}
