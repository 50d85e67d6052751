package namespace

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
)

// seenLock is what a wait for a change of a name compares.
type seenLock struct {
	token ids.Token
	stale bool
}

func seenLocks(ns *Namespace) map[NameKey]seenLock {
	seen := make(map[NameKey]seenLock)
	ns.tree.byName.Scan(func(e *entry) bool {
		seen[KeyOfName(e.parent, []byte(e.name))] = seenLock{e.token, e.stale != nil}
		return true
	})
	return seen
}

// TestChangedNamesAreAllThatWaitsCompare compares all names before and after each of many random commands.
func TestChangedNamesAreAllThatWaitsCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = g.often(70)
		before := seenLocks(ns)
		for index := range 1 + g.below(pick(g, 20, 50, 200)) {
			cmd := g.next()
			t.Logf("%d: %v", index+1, cmd)
			ns.Apply(ids.Index(index+1), cmd)
			after, changed := seenLocks(ns), ns.ChangedNames()
			for _, key := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after))) {
				if before[key] != after[key] {
					require.Contains(t, changed, key)
				}
			}
			before = after
		}
	})
}

func TestAHeartbeatChangesNoName(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", nil)
	require.Equal(t, []NameKey{KeyOfName(RootIno, []byte("lock"))}, tr.ns.ChangedNames())
	tr.fill(here, RootIno, "lock", towerFacts("me")).ok()
	tr.fill(here, RootIno, "lock", towerFacts("me")).ok()
	require.Empty(t, tr.ns.ChangedNames())
}

func TestAFilterHasItsNamesAndFewOthers(t *testing.T) {
	require.False(t, NameFilter(nil).Has(0))
	for _, names := range []int{1, 10, 1000, 10_000, 100_000} {
		f := NewNameFilter(names)
		require.True(t, f.IsValid())
		key := func(i int) NameKey { return KeyOfName(RootIno, fmt.Appendf(nil, "lock-%d", i)) }
		for i := range names {
			f.Add(key(i))
		}
		wrong := 0
		for i := range names {
			require.True(t, f.Has(key(i)))
			if f.Has(key(names + i)) {
				wrong++
			}
		}
		if names <= 10_000 && names >= 1000 {
			require.Less(t, wrong, names/5)
		}
	}
	require.False(t, make(NameFilter, 7).IsValid())
	require.False(t, make(NameFilter, 2*largestNameFilter).IsValid())
	require.False(t, make(NameFilter, 24).IsValid())
}
