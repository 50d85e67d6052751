package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/stats"
)

// plan is a short one.
func plan(dirs ...string) Plan {
	return Plan{
		Dirs: dirs, Workers: 2, Duration: 5 * time.Millisecond,
		Progress: func(Step) {}, Warn: func(string) {},
	}
}

func requireEmpty(t testing.TB, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
}

func TestEverythingIsMeasuredInEachDirectory(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	p := plan(a, b)
	var steps []string
	p.Progress = func(s Step) {
		if s.Round > 0 {
			steps = append(steps, s.Measurement)
		}
	}
	report, err := Run(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, names(), steps, "one round of each")
	require.Equal(t, 2, report.Workers)
	require.NotEmpty(t, report.Kernel)
	require.NotEmpty(t, report.Directories[0].Type)
	require.Len(t, report.Results, 2*len(All))
	for i, r := range report.Results {
		require.Equal(t, All[i/2].Name, r.Measurement)
		require.Equal(t, []string{p.Dirs[i%2]}, r.Directories)
		require.Empty(t, r.Error)
		require.Positive(t, r.Count)
		require.Positive(t, r.Median)
		require.GreaterOrEqual(t, r.P99, r.Median)
		require.InDelta(t, r.Median/report.Results[i-i%2].Median, r.Ratio, 1e-9)
	}
	requireEmpty(t, a, b)
}

func TestTogetherIsOneResult(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	p := plan(a, b)
	p.Together, p.Workers, p.Only = true, 5, []string{"list", "cycle"}
	report, err := Run(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, report.Results, 2)
	for i, r := range report.Results {
		require.Equal(t, p.Only[i], r.Measurement)
		require.Equal(t, []string{a, b}, r.Directories)
		require.GreaterOrEqual(t, r.Count, 5)
		require.Positive(t, r.PerSecond)
	}
	requireEmpty(t, a, b)
}

func TestOwnDirectories(t *testing.T) {
	dir := t.TempDir()
	p := plan(dir, dir)
	p.Together, p.OwnDirs, p.Workers, p.Only = true, true, 5, []string{"mkdir", "list"}
	var made []string
	p.Progress = func(s Step) {
		if s.Round == 0 {
			return
		}
		var err error
		made, err = filepath.Glob(filepath.Join(dir, "*", "*"))
		require.NoError(t, err)
		want := p.Workers
		if s.Measurement == "list" {
			want = len(p.Dirs)
		}
		require.Len(t, made, want)
	}
	report, err := Run(t.Context(), p)
	require.NoError(t, err)
	require.NotEmpty(t, made)
	require.True(t, report.OwnDirs)
	requireEmpty(t, dir)
}

// TestHandoversAreBetweenDirectoriesThatShowTheSame has a directory under two names, one of its own, and another one
// under three.
func TestHandoversAreBetweenDirectoriesThatShowTheSame(t *testing.T) {
	dir := t.TempDir()
	var dirs []string
	for _, of := range []string{"a", "a", "b", "c", "c", "c"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, of), 0o755))
		link := filepath.Join(dir, "link"+string(rune('0'+len(dirs))))
		require.NoError(t, os.Symlink(of, link))
		dirs = append(dirs, link)
	}
	p := plan(dirs...)
	p.Only = []string{"handover-flock", "handover-create"}
	report, err := Run(t.Context(), p)
	require.NoError(t, err)
	var between [][]string
	for _, r := range report.Results {
		require.Empty(t, r.Error)
		require.Positive(t, r.Count)
		require.Zero(t, r.PerSecond)
		between = append(between, r.Directories)
	}
	once := [][]string{dirs[:2], dirs[2:3], dirs[3:5], dirs[4:]}
	require.Equal(t, slices.Concat(once, once), between)
	requireEmpty(t, dirs...)
}

// TestLocksThatDoNotExclude has two sides that lock different files.
func TestLocksThatDoNotExclude(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, prepare := range []func(context.Context, target, *Plan) (trial, error){handoverOf(newFlocker), handoverOf(newCreator)} {
		h, err := prepare(t.Context(), target{dirs: []string{a, b}, paths: []string{a, b}}, nil)
		require.NoError(t, err)
		require.ErrorIs(t, h.run(t.Context(), time.Millisecond, new(stats.Samples)), errNotExclusive)
		h.close()
	}
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	interrupt := errors.New("interrupted by the test")
	for i, m := range All {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		p := plan(dir)
		p.Duration, p.Only = MaxDuration, []string{m.Name}
		p.Progress = func(s Step) {
			if s.Round == i%3 {
				cancel(interrupt)
			}
		}
		_, err := Run(ctx, p)
		require.ErrorIs(t, err, interrupt, m.Name)
		requireEmpty(t, dir)
	}
}

// TestFailureLeavesNothing has a directory disappear below the workers.
func TestFailureLeavesNothing(t *testing.T) {
	for _, m := range All {
		dir, gone := t.TempDir(), t.TempDir()
		p := plan(dir, gone)
		p.Only = []string{m.Name}
		p.Progress = func(s Step) {
			if s.Round == 1 {
				require.NoError(t, os.RemoveAll(gone))
			}
		}
		if _, err := Run(t.Context(), p); m.Name != "flock" && m.Name != "handover-flock" { // on open files
			require.ErrorIs(t, err, unix.ENOENT, m.Name)
			require.ErrorContains(t, err, m.Name+" in "+gone)
		}
		requireEmpty(t, dir)
	}
}

func TestRemainsAreNamedAndNotTouched(t *testing.T) {
	dir := t.TempDir()
	remains := filepath.Join(dir, prefix+"1234")
	require.NoError(t, os.Mkdir(remains, 0o755))
	p := plan(dir, dir)
	p.Only = []string{"mkdir"}
	var warned []string
	p.Warn = func(text string) { warned = append(warned, text) }
	_, err := Run(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, warned, 2, "once for each time it was given, and nothing of the run itself")
	require.Contains(t, warned[0], remains)
	require.DirExists(t, remains)
}

func TestWhatCannotBeMeasured(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		change func(*Plan)
		text   string
	}{
		{func(p *Plan) { p.Dirs = nil }, "no directory"},
		{func(p *Plan) { p.Dirs = []string{dir, file} }, file + ": not a directory"},
		{func(p *Plan) { p.Dirs = []string{dir, dir + "/missing"} }, "missing: no such file or directory"},
		{func(p *Plan) { p.Dirs = []string{dir, "/proc"} }, "nothing can be created in /proc"},
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
	require.NoError(t, os.Remove(file))
	requireEmpty(t, dir)
}

// TestFileSystemWithoutFlock is about an answer that is a result, next to other directories' figures.
func TestFileSystemWithoutFlock(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	refused := filepath.Base(dirs[0])
	m := Measurement{Name: "flock", targets: inTurn, prepare: func(ctx context.Context, t target, p *Plan) (trial, error) {
		if filepath.Base(t.dirs[0]) == refused {
			return nil, &os.PathError{Op: "flock", Path: "lock0", Err: syscall.ENOLCK}
		}
		return crewOf(flock)(ctx, t, p)
	}}
	spaces, err := openSpaces(dirs, func(string) {})
	require.NoError(t, err)
	p := plan(dirs...)
	results, err := p.measure(t.Context(), m, inTurn(spaces, false), Step{})
	require.NoError(t, err)
	require.Equal(t, "flock lock0: no locks available", results[0].Error)
	require.Empty(t, results[1].Error)
	require.Positive(t, results[1].Median)
	require.Zero(t, results[1].Ratio, "there is nothing to compare with")
	require.NoError(t, closeSpaces(spaces))
	requireEmpty(t, dirs...)
}

func TestQuantiles(t *testing.T) {
	var took []time.Duration
	for i := range 101 {
		took = append(took, time.Duration(100-i)*time.Microsecond)
	}
	c := &contest{target: target{dirs: []string{"a"}}, samples: stats.Samples{Took: took, Elapsed: 101 * time.Second}}
	require.Equal(t, []stats.Result{{
		Measurement: "cycle", Directories: []string{"a"}, Count: 101, Median: 50, P99: 99, PerSecond: 1, Ratio: 1,
	}}, summarize(All[0], []*contest{c}))
}
