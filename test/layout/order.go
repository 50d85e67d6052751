package main

import (
	"math/rand"
	"slices"
)

// order looks for an order of the files with few uses leading back, from the file with the most uses of
// others to the most used one. It moves one file at a time, as long as this helps, from several beginnings.
// The result is the same each time, and not always the best.
func (g *graph) order() []int {
	const beginnings = 40
	random := rand.New(rand.NewSource(1))
	var best []int
	for range beginnings {
		order := random.Perm(len(g.files))
		for g.improve(order) {
		}
		if best == nil || len(g.backUp(order)) < len(g.backUp(best)) {
			best = order
		}
	}
	return best
}

// improve moves each file to where the fewest uses run back up. False: all of them are there.
func (g *graph) improve(order []int) bool {
	improved := false
	for i, f := range order {
		gain, most, to := 0, 0, i
		for k := i + 1; k < len(order); k++ {
			if gain += g.gain(order[k], f); gain > most {
				most, to = gain, k
			}
		}
		gain = 0
		for k := i - 1; k >= 0; k-- {
			if gain += g.gain(f, order[k]); gain > most {
				most, to = gain, k
			}
		}
		if to != i {
			copy(order, slices.Insert(slices.Delete(order, i, i+1), to, f))
			improved = true
		}
	}
	return improved
}

// gain is how many uses fewer run back up once above stands above below, and not the other way round.
func (g *graph) gain(above, below int) int {
	gain := 0
	if g.uses(above, below) {
		gain++
	}
	if g.uses(below, above) {
		gain--
	}
	return gain
}

// circles returns the sets of files leading to each other, by Tarjan's algorithm.
func (g *graph) circles() [][]int {
	n := len(g.files)
	found, low, waits := make([]int, n), make([]int, n), make([]bool, n)
	var stack []int
	var circles [][]int
	last := 0
	var visit func(int)
	visit = func(v int) {
		last++
		found[v], low[v], waits[v] = last, last, true
		stack = append(stack, v)
		for w := range n {
			switch {
			case !g.uses(v, w):
			case found[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case waits[w]:
				low[v] = min(low[v], found[w])
			}
		}
		if low[v] < found[v] {
			return
		}
		begin := slices.Index(stack, v)
		circle := slices.Clone(stack[begin:])
		stack = stack[:begin]
		for _, w := range circle {
			waits[w] = false
		}
		if len(circle) > 1 {
			circles = append(circles, circle)
		}
	}
	for v := range n {
		if found[v] == 0 {
			visit(v)
		}
	}
	return circles
}
