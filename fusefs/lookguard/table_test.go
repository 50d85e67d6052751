package lookguard

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func alive(Process) bool { return false }

// memoryWhere is one in which processes have ended if they are said to.
func memoryWhere(hasEnded func(Process) bool) *Memory {
	l := New(nil)
	l.table.hasEnded = hasEnded
	return l
}

func lockAt(parent ids.Inode, name string, token ids.Token) []*storepb.Observation {
	return []*storepb.Observation{{Parent: uint64(parent), Name: []byte(name), Token: uint64(token)}}
}

func (m *Memory) tokenOf(process Process, key Name) uint64 {
	return tokenOf(m.recall([]Process{process}, key))
}

func tokenOf(seen []*storepb.Observation) uint64 {
	if len(seen) == 0 {
		return 0
	}
	return seen[0].GetToken()
}

// checkAccount counts anew.
func checkAccount(t *testing.T, table *table) {
	t.Helper()
	entries, bytes, in := 0, 0, make(map[ids.Inode]int)
	shares, names := make(map[*share]int), make(map[*sharedName]int)
	for _, v := range table.viewers {
		for ; v != nil; v = v.next {
			own := viewerCost
			for l := v.oldest; l != nil; l = l.newer {
				require.Same(t, l, table.entries[entryKey{v, l.name}])
				require.True(t, l.newer == nil && v.newest == l || l.newer.older == l && l.newer.at >= l.at)
				names[l.name]++
				own += entryCost
				entries++
				if l.name.Name.Name != "" {
					in[l.name.Parent]++
				}
			}
			require.Equal(t, own, v.bytes)
			require.NotNil(t, v.newest)
			require.LessOrEqual(t, len(v.directories), keptDirectories)
			shares[v.share] += own
		}
	}
	for s, own := range shares {
		require.Same(t, s, table.shares[s.uid])
		for _, named := range s.names {
			require.Equal(t, names[named], named.entries)
			own += nameCost + len(named.Name.Name)
		}
		require.Equal(t, own+shareCost, s.bytes)
		bytes += s.bytes
	}
	require.Len(t, table.shares, len(shares))
	require.Len(t, table.entries, entries)
	require.Equal(t, in, table.in)
	require.Equal(t, bytes, table.bytes)
}

// floods are ways in which a user may see a lot, without end. Each answers what it saw last.
func floods(uid uint32) map[string]func(l *Memory, i int) (Process, Name) {
	note := func(l *Memory, family []Process, key Name) (Process, Name) {
		l.note(family, uid, lockAt(key.Parent, key.Name, 7), Made)
		return family[0], key
	}
	chain := make([]Process, 64)
	for i := range chain {
		chain[i] = Process{PID: 1000 + i, Start: 5}
	}
	return map[string]func(l *Memory, i int) (Process, Name){
		"a lock, by many processes": func(l *Memory, i int) (Process, Name) {
			return note(l, []Process{{PID: 1000 + i, Start: 5}}, Name{1, "flood"})
		},
		"many locks": func(l *Memory, i int) (Process, Name) {
			return note(l, chain[:1], Name{1, fmt.Sprint("flood", i)})
		},
		"many locks, by a chain of processes": func(l *Memory, i int) (Process, Name) {
			return note(l, chain, Name{1, fmt.Sprint("flood", i)})
		},
		"a lock of its own with a long name in a directory of its own, by each of many processes": func(l *Memory, i int) (Process, Name) {
			return note(l, []Process{{PID: 1000 + i, Start: 5}}, Name{ids.Inode(i), fmt.Sprintf("%0255d", i)})
		},
		"many directories listed": func(l *Memory, i int) (Process, Name) {
			note(l, chain[:1], Name{ids.Inode(i), "flood"})
			l.list(chain[1], uid, ids.Inode(i))
			return chain[0], Name{ids.Inode(i), "flood"}
		},
	}
}

// fewBytes are enough for some thousand observations.
const fewBytes = 1 << 20

// TestNobodyLosesAnObservationToAnotherUser, however much that one sees.
func TestNobodyLosesAnObservationToAnotherUser(t *testing.T) {
	for what := range floods(1) {
		t.Run(what, func(t *testing.T) {
			l := memoryWhere(alive)
			l.table.most = fewBytes
			other, script := Process{PID: 1, Start: 1}, Process{PID: 2, Start: 1}
			lock := Name{1, "lock"}
			l.note([]Process{other}, 0, lockAt(1, "lock", 5), Read)
			// A process of one user may have descendants that act for another.
			l.note([]Process{script}, 0, lockAt(1, "lock", 6), Read)
			flood := floods(1)[what]
			for i := range 5000 {
				process, seen := flood(l, i)
				if i%1000 == 0 {
					l.note([]Process{script}, 1, lockAt(1, fmt.Sprint("mine", i), 8), Read)
					checkAccount(t, l.table)
				}
				if l.table.bytes > fewBytes || l.tokenOf(process, seen) != 7 {
					require.LessOrEqual(t, l.table.bytes, fewBytes)
					require.EqualValues(t, 7, l.tokenOf(process, seen), "the last one")
				}
			}
			require.EqualValues(t, 5, l.tokenOf(other, lock))
			require.EqualValues(t, 6, l.tokenOf(script, lock))
			require.Greater(t, l.table.bytes, fewBytes*3/4)
		})
	}
}

// TestObservationsTakeNoMoreMemory than is said, whatever a user does, and give it back.
func TestObservationsTakeNoMoreMemory(t *testing.T) {
	for what, flood := range floods(1) {
		t.Run(what, func(t *testing.T) {
			before := heap()
			l := memoryWhere(alive)
			for i := 0; l.table.bytes < mostBytes*15/16; i++ {
				flood(l, i)
				if i == mostBytes/entryCost {
					t.Fatal("it does not get full")
				}
			}
			require.Less(t, heap()-before, mostBytes*5/4)
			l.table.hasEnded = func(Process) bool { return true }
			l.table.sweep()
			require.Less(t, heap()-before, fewBytes)
			runtime.KeepAlive(l)
		})
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestAFullTableIsSharedByUser takes the same from all who have most of it.
func TestAFullTableIsSharedByUser(t *testing.T) {
	l := memoryWhere(alive)
	l.table.most = fewBytes
	flood := func(uid uint32, from int) {
		for i := range 5000 {
			l.note([]Process{{PID: from + i, Start: 5}}, uid, lockAt(1, "lock", 7), Read)
		}
	}
	flood(1, 1000)
	one := l.table.shares[1].bytes
	flood(2, 10_000)
	require.Less(t, l.table.shares[1].bytes, one)
	require.InDelta(t, l.table.shares[1].bytes, l.table.shares[2].bytes, fewBytes/8)
	checkAccount(t, l.table)
}

// TestAProcessThatSeesMuchLosesItsOwn first, not those of others of its user, and the oldest.
func TestAProcessThatSeesMuchLosesItsOwn(t *testing.T) {
	l := memoryWhere(alive)
	l.table.most = fewBytes
	few, much := Process{PID: 1, Start: 1}, Process{PID: 2, Start: 1}
	l.note([]Process{few}, 0, lockAt(1, "lock", 5), Read)
	for i := range 10_000 {
		l.note([]Process{much}, 0, lockAt(1, fmt.Sprint(i), 7), Read)
	}
	require.EqualValues(t, 5, l.tokenOf(few, Name{1, "lock"}))
	require.Zero(t, l.tokenOf(much, Name{1, "0"}))
	require.EqualValues(t, 7, l.tokenOf(much, Name{1, "8000"}))
	require.EqualValues(t, 7, l.tokenOf(much, Name{1, "9999"}))
}

// TestObservationsOfProcessesThatEndedGoSoon, and those whom they looked for keep theirs.
func TestObservationsOfProcessesThatEndedGoSoon(t *testing.T) {
	script := Process{PID: 1, Start: 1}
	l := memoryWhere(func(process Process) bool { return process != script })
	for i := range 10_000 {
		l.note([]Process{{PID: 1000 + i, Start: 5}, script}, 0, lockAt(1, "lock", ids.Token(i)), Read)
		require.LessOrEqual(t, len(l.table.viewers), fewViewers)
	}
	require.EqualValues(t, 9_999, l.tokenOf(script, Name{1, "lock"}))
	checkAccount(t, l.table)
}

func TestHasEnded(t *testing.T) {
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cat.Start())
	require.False(t, hasEnded(Process{PID: cat.Process.Pid}))
	require.NoError(t, in.Close())
	require.NoError(t, cat.Wait())
	require.True(t, hasEnded(Process{PID: cat.Process.Pid}))
}

// TestObservationsAreOfAllUsersThatAProcessActsFor has a process see the same names for two users.
func TestObservationsAreOfAllUsersThatAProcessActsFor(t *testing.T) {
	l := memoryWhere(alive)
	script, lock := Process{PID: 1, Start: 1}, Name{1, "lock"}
	l.note([]Process{script}, 0, lockAt(1, "lock", 5), Made)
	l.note([]Process{script}, 1, lockAt(1, "lock", 6), Read)
	require.EqualValues(t, 6, l.tokenOf(script, lock), "the last counts")
	l.note([]Process{script}, 1, []*storepb.Observation{{Parent: 1, Name: []byte("lock"), Token: 5, Empty: true}}, Read)
	require.False(t, l.recall([]Process{script}, lock)[0].GetEmpty(), "it is its own")
	l.list(script, 1, 1)
	require.Empty(t, l.recall([]Process{script}, lock))
	l.note([]Process{script}, 0, lockAt(1, "lock", 7), Read)
	require.EqualValues(t, 7, l.tokenOf(script, lock))
	l.forget([]Process{script}, lock)
	require.Empty(t, l.recall([]Process{script}, lock))
	checkAccount(t, l.table)
}

// TestTableKeepsAccount of whatever is done with it.
func TestTableKeepsAccount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := memoryWhere(func(process Process) bool { return process.PID == 7 })
	for range 2000 {
		family := make([]Process, 1+random.IntN(4))
		for i := range family {
			family[i] = Process{PID: 1 + random.IntN(9), Start: 5}
		}
		uid, dir := random.Uint32N(3), random.Uint64N(3)
		seen := []*storepb.Observation{
			{Parent: dir, Name: []byte(strings.Repeat("l", 1+random.IntN(5))), Token: random.Uint64N(3), Data: random.IntN(4) == 0},
			{Parent: 9, Name: []byte{'a' + byte(dir)}, Token: random.Uint64N(3), Data: random.IntN(4) == 0},
		}
		switch random.IntN(12) {
		case 0:
			l.list(family[0], uid, ids.Inode(dir))
		case 1, 2, 3:
			l.forget(family, Name{ids.Inode(dir), string(seen[0].GetName())})
		case 4:
			l.table.sweep()
		case 5:
			l.table.shrink(random.IntN(2*l.table.bytes + 1))
		default:
			l.note(family, uid, seen[:1+random.IntN(2)], How(random.IntN(3)))
		}
		checkAccount(t, l.table)
	}
	l.table.shrink(0)
	checkAccount(t, l.table)
	require.Empty(t, l.table.entries)
	require.Zero(t, l.table.bytes)
}
