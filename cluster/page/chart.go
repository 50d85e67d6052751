package page

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Chart is a chart of the last hour, newest values on the right. Its vertical axis begins at 0.
type Chart struct {
	Title string
	Lines []Line // none: no measurements yet
	Top   string // label of the end of the vertical axis, with its unit
	Half  string
	Says  string // text alternative
}

// Line is a line of a chart.
type Line struct {
	Kind   string // p50, p99, only
	Points string // in SVG's format
	Newest string // with its unit
}

const (
	chartWidth  = 240
	chartHeight = 80
	chartSlots  = 120 // samples of half a minute in an hour
	slotWidth   = float64(chartWidth) / chartSlots
)

// figure is a line of a chart before it is drawn.
type figure struct {
	kind string
	of   func(Sample) float64
}

func charts(samples []Sample) []Chart {
	entries := func(v float64) string {
		if v == 1 {
			return "1 entry"
		}
		return thousands(int(v)) + " entries"
	}
	return []Chart{
		chart("Commit time", shortTime, 1e-4, samples,
			figure{"p50", func(s Sample) float64 { return s.CommitP50 }}, figure{"p99", func(s Sample) float64 { return s.CommitP99 }}),
		chart("Fsync time", shortTime, 1e-4, samples,
			figure{"p50", func(s Sample) float64 { return s.WriteP50 }}, figure{"p99", func(s Sample) float64 { return s.WriteP99 }}),
		chart("Lag behind the leader", entries, 10, samples, figure{"only", func(s Sample) float64 { return float64(s.Lag) }}),
	}
}

// shortTime returns seconds as text, without needless digits.
func shortTime(seconds float64) string {
	return strings.Replace(fine(time.Duration(math.Round(seconds*1e9))), ".0 ", " ", 1)
}

// chart draws figures. least is the least end of the vertical axis.
func chart(title string, show func(float64) string, least float64, samples []Sample, figures ...figure) Chart {
	c := Chart{Title: title, Says: title + " over the last hour: no measurements yet"}
	if len(samples) == 0 {
		return c
	}
	most := 0.0
	for _, f := range figures {
		for _, s := range samples {
			most = max(most, f.of(s))
		}
	}
	top := axisEnd(max(most, least))
	c.Top, c.Half = show(top), show(top/2)
	var newest []string
	for _, f := range figures {
		var points strings.Builder
		for i, s := range samples {
			x, y := slotWidth*float64(chartSlots-len(samples)+i+1), chartHeight*(1-f.of(s)/top)
			if i == 0 { // a sample is a period: a single one is a line, too
				fmt.Fprintf(&points, "%.1f,%.1f ", x-slotWidth, y)
			}
			fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
		}
		value := show(f.of(samples[len(samples)-1]))
		c.Lines = append(c.Lines, Line{f.kind, points.String(), value})
		newest = append(newest, strings.TrimPrefix(f.kind+" "+value, "only "))
	}
	c.Says = fmt.Sprintf("%s over the last hour: now %s, at most %s", title, strings.Join(newest, ", "), show(most))
	return c
}

// axisEnd returns the next 1, 2 or 5 with zeros, so that an axis has round labels.
func axisEnd(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if v <= step*unit*(1+1e-9) {
			return step * unit
		}
	}
	return 10 * unit
}
