package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"lockfs/test/stats"
)

// key is a row of the table.
type key struct {
	measurement string
	workers     int
	where       string
}

// table has the results of all rounds.
type table struct {
	rounds []map[key]stats.Result
	keys   []key // in the order of arrival
}

func newTable() *table { return new(table) }

func (t *table) nextRound() { t.rounds = append(t.rounds, make(map[key]stats.Result)) }

func (t *table) add(k key, r stats.Result) {
	t.rounds[len(t.rounds)-1][k] = r
	if !slices.Contains(t.keys, k) {
		t.keys = append(t.keys, k)
	}
}

// Figures of a result.
func medianOf(r stats.Result) float64 { return r.Median }
func p99Of(r stats.Result) float64    { return r.P99 }
func rateOf(r stats.Result) float64   { return r.PerSecond }

// typical returns the median of the rounds; 0 without a figure.
func (t *table) typical(k key, figure func(stats.Result) float64) float64 {
	var all []float64
	for _, round := range t.rounds {
		all = append(all, figure(round[k]))
	}
	return middle(all)
}

// ratio returns the median of the rounds' ratios. Two results of one round come from the same load of the
// machine.
func (t *table) ratio(k, to key, figure func(stats.Result) float64) float64 {
	var all []float64
	for _, round := range t.rounds {
		if base := figure(round[to]); base > 0 {
			all = append(all, figure(round[k])/base)
		}
	}
	return middle(all)
}

func middle(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	return stats.Quantile(of, 0.5)
}

// print prints all figures in the order of measurement, and then the project's aims.
func (t *table) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "WORKERS\tMEDIAN us\tP99 us\tPER SECOND\tTO ETCD\tTO GLUSTERFS\t  WHAT, WHERE")
	for _, k := range t.keys {
		for _, r := range t.rounds {
			if r[k].Error != "" {
				fmt.Fprintf(out, "%d\t\t\t\t\t\t  %s, %s: %s\n", k.workers, k.measurement, k.where, r[k].Error)
				break
			}
		}
		if t.typical(k, medianOf) == 0 {
			continue
		}
		fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%s\t%s\t  %s, %s\n", k.workers, digits(t.typical(k, medianOf)), digits(t.typical(k, p99Of)),
			digits(t.typical(k, rateOf)), t.toEtcd(k), digits(t.ratio(k, key{k.measurement, k.workers, glusterFS}, medianOf)),
			k.measurement, k.where)
	}
	fmt.Fprintln(out)
	if err := out.Flush(); err != nil {
		return err
	}
	return t.printAims(w)
}

// toEtcd returns the ratio to etcd's mutex, of the medians of an acquire and release.
func (t *table) toEtcd(k key) string {
	if !slices.Contains([]string{"cycle", "cycle" + inOwnDirs, "mkdir", "flock", "mutex", "create+put+delete"}, k.measurement) {
		return ""
	}
	if k.workers == 1 {
		return digits(t.ratio(k, key{"mutex", 1, etcdLeads}, medianOf))
	}
	return digits(t.ratio(k, key{"mutex", k.workers, etcdAll}, medianOf))
}

// digits prints three digits; nothing for a missing figure.
func digits(x float64) string {
	switch {
	case x == 0:
		return ""
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// handover returns the first handover by create between two mounts, one of them named, in microseconds.
func (t *table) handover(with string) float64 {
	for _, k := range t.keys {
		if k.measurement == "handover-create" && strings.Contains(k.where, with) {
			return t.typical(k, medianOf)
		}
	}
	return 0
}

// printAims prints the aims and the results.
func (t *table) printAims(w io.Writer) error {
	many := 0
	for _, k := range t.keys {
		many = max(many, k.workers)
	}
	one := func(measurement, where string) key { return key{measurement, 1, where} }
	mutex, mutexes := one("mutex", etcdLeads), key{"mutex", many, etcdAll}
	cycles, apart := key{"cycle", many, lockfsAll}, key{"cycle" + inOwnDirs, many, lockfsAll}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "FOUND\tAIM\tOF WHAT")
	for _, aim := range []struct {
		found     float64
		aim, what string
	}{
		{t.typical(one("stat", lockfsLeads), medianOf), "<= 60", "us for stat of a held lock at the leader"},
		{t.typical(one("stat", lockfsFollows), medianOf), "<= 60", "us for stat at a follower"},
		{t.typical(one("stat", lockfsClient), medianOf), "<= 60", "us for stat at a client"},
		{t.typical(one("stat", bareFUSE), medianOf), "", "us for stat on bare FUSE"},
		{t.ratio(one("cycle", lockfsLeads), mutex, medianOf), "<= 1", "cycle at the leader / etcd's mutex at its leader, 1 worker"},
		{t.ratio(one("cycle", lockfsFollows), mutex, medianOf), "<= 1.15", "cycle at a follower / the same"},
		{t.ratio(one("cycle", lockfsClient), mutex, medianOf), "<= 1.2", "cycle at a client / the same"},
		{t.ratio(one("cycle", lockfsLeads), one("create+put+delete", etcdLeads), medianOf), "", "cycle at the leader / etcd's create+put+delete, three commits like it, 1 worker"},
		{t.ratio(one("cycle", lockfsLeads), one("cycle", glusterFS), medianOf), "", "cycle at the leader / on GlusterFS, 1 worker"},
		{t.ratio(one("flock", lockfsLeads), mutex, medianOf), "<= 0.45", "flock and unlock at the leader / etcd's mutex"},
		{t.ratio(one("flock", lockfsFollows), mutex, medianOf), "<= 0.5", "flock and unlock at a follower / the same"},
		{t.ratio(one("flock", lockfsClient), mutex, medianOf), "<= 0.55", "flock and unlock at a client / the same"},
		{t.ratio(apart, mutexes, rateOf), ">= 0.8", fmt.Sprintf("cycles per second in own directories / etcd's mutexes at three members, %d workers", many)},
		{t.ratio(cycles, mutexes, rateOf), ">= 0.3", "the same in one directory"},
		{t.ratio(key{"cycle" + inOwnDirs, many, bareAll}, mutexes, rateOf), "", "the same on bare FUSE, which asks nobody and writes to no disk"},
		{t.handover(lockfsLeads) / 1000, "<= 2", "ms for a handover by unlink and create to another mount, which polls without a pause"},
		{t.handover(bareFUSE) / 1000, "", "the same on bare FUSE"},
	} {
		fmt.Fprintf(out, "%s\t%s\t%s\n", digits(aim.found), aim.aim, aim.what)
	}
	return out.Flush()
}
