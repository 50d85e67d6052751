package page

import (
	"fmt"
	"strings"
	"time"
)

// Chart is a small chart of the last hour, newest values on the right.
type Chart struct {
	Title  string
	Lines  []Line
	Newest string // with its unit
	Most   string
	Says   string // text alternative
}

// Line is a line of a chart.
type Line struct {
	Kind   string // p50, p99, only
	Points string // in SVG's format
}

const (
	chartWidth  = 220
	chartHeight = 48
	chartSlots  = 120 // samples of half a minute in an hour
)

func charts(samples []Sample) []Chart {
	seconds := func(v float64) string { return fine(time.Duration(v * float64(time.Second))) }
	entries := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	return []Chart{
		chart("commit", seconds, samples, func(s Sample) float64 { return s.CommitP50 }, func(s Sample) float64 { return s.CommitP99 }),
		chart("fsync", seconds, samples, func(s Sample) float64 { return s.WriteP50 }, func(s Sample) float64 { return s.WriteP99 }),
		chart("lag, entries", entries, samples, func(s Sample) float64 { return float64(s.Lag) }),
	}
}

func chart(title string, show func(float64) string, samples []Sample, figures ...func(Sample) float64) Chart {
	c := Chart{Title: title, Newest: "–", Most: "–"}
	most := 0.0
	for _, figure := range figures {
		for _, s := range samples {
			most = max(most, figure(s))
		}
	}
	kinds := []string{"p50", "p99"}
	if len(figures) == 1 {
		kinds = []string{"only"}
	}
	for i, figure := range figures {
		var points strings.Builder
		for j, s := range samples {
			x := float64(chartWidth) * float64(chartSlots-len(samples)+j+1) / chartSlots
			y := float64(chartHeight - 2)
			if most > 0 {
				y -= figure(s) / most * (chartHeight - 6)
			}
			fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
		}
		c.Lines = append(c.Lines, Line{kinds[i], points.String()})
	}
	if len(samples) > 0 {
		var newest []string
		for i, figure := range figures {
			newest = append(newest, strings.TrimSpace(strings.TrimPrefix(kinds[i], "only")+" "+show(figure(samples[len(samples)-1]))))
		}
		c.Newest, c.Most = strings.Join(newest, ", "), show(most)
	}
	c.Says = fmt.Sprintf("%s over the last hour: %s now, at most %s", title, c.Newest, c.Most)
	return c
}
