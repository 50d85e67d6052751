package stats

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	of := []int{5, 1, 4, 2, 3}
	for q, want := range map[float64]int{0: 1, 0.5: 3, 0.9: 4, 0.99: 4, 1: 5} {
		require.Equal(t, want, Quantile(of, q), q)
	}
	require.Equal(t, []int{5, 1, 4, 2, 3}, of)
	require.Equal(t, 2.0, Quantile([]float64{1, 2, 3, 4}, 0.5), "the lower one in the middle")
	require.Equal(t, 7, Quantile([]int{7}, 0.99))
}

func TestResult(t *testing.T) {
	s := &Samples{Took: []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}}
	r := s.Result("cycle", []string{"/a"})
	require.Equal(t, Result{Measurement: "cycle", Directories: []string{"/a"}, Count: 3, Median: 2000, P99: 2000}, r)
	s.Elapsed = 2 * time.Second
	require.Equal(t, 1.5, s.Result("cycle", nil).PerSecond)

	results := []Result{{Median: 2}, {Median: 3}, {Error: "it cannot"}}
	SetRatios(results)
	require.Equal(t, []float64{1, 1.5, 0}, []float64{results[0].Ratio, results[1].Ratio, results[2].Ratio})
	results = []Result{{Error: "it cannot"}, {Median: 3}}
	SetRatios(results)
	require.Zero(t, results[1].Ratio, "there is nothing to compare with")
}

func TestParts(t *testing.T) {
	for duration, want := range map[time.Duration]int{time.Nanosecond: 1, 250 * time.Millisecond: 1, 2 * time.Second: 8} {
		count, length := Parts(duration)
		require.Equal(t, want, count)
		require.Equal(t, duration, length*time.Duration(count))
	}
}

func TestCrew(t *testing.T) {
	var crew Crew
	calls := make([]int, 3)
	for i := range calls {
		crew.Add(func() error { calls[i]++; return nil })
	}
	var s Samples
	for range 2 {
		require.NoError(t, crew.Run(t.Context(), time.Nanosecond, &s))
	}
	require.GreaterOrEqual(t, slices.Min(calls), 4, "each twice a run, one of which does not count")
	require.Equal(t, calls[0]+calls[1]+calls[2]-2*len(calls), len(s.Took))
	require.Positive(t, s.Elapsed)
}

func TestCrewEnds(t *testing.T) {
	bad := errors.New("bad")
	var crew Crew
	left := 100
	crew.Add(func() error { return nil })
	crew.Add(func() error {
		if left--; left == 0 {
			return bad
		}
		return nil
	})
	require.ErrorIs(t, crew.Run(t.Context(), time.Hour, new(Samples)), bad, "of another worker")

	ctx, cancel := context.WithCancelCause(t.Context())
	var cancelled Crew
	cancelled.Add(func() error { cancel(bad); return nil })
	require.ErrorIs(t, cancelled.Run(ctx, time.Hour, new(Samples)), bad, "the cause")
}
