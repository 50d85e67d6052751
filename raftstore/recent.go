package raftstore

import (
	"slices"

	"lockfs/raftstore/ids"
)

// keptRecent is the least number of items kept.
const keptRecent = 16 << 10

// recent holds the latest items of a kind, in the order of the log. All replicas have the same, as far back
// as each of them goes.
type recent[T any] struct {
	after ids.Index // the list has all items of later commands
	list  []recentItem[T]
}

type recentItem[T any] struct {
	index ids.Index
	item  T
}

func (r *recent[T]) add(index ids.Index, items []T) {
	for _, item := range items {
		r.list = append(r.list, recentItem[T]{index, item})
	}
	if drop := len(r.list) - keptRecent; drop > keptRecent {
		r.after = r.list[drop-1].index
		r.list = slices.Clone(r.list[drop:])
	}
}

// restart begins with another state, of which no item is known.
func (r *recent[T]) restart(index ids.Index) { r.after, r.list = index, nil }

// since returns the items of the commands after an index. known is false if some of them may be missing.
func (r *recent[T]) since(after ids.Index) (items []recentItem[T], known bool) {
	if after < r.after {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(r.list, after+1, func(item recentItem[T], index ids.Index) int { return int(item.index) - int(index) })
	return r.list[first:], true
}
