package namespace

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestTouchedAreAllThatQueriesShow asks everything that has keys after each of many random commands: what is answered otherwise than
// before has a key that was touched.
func TestTouchedAreAllThatQueriesShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = g.often(70)
		before := keyedAnswers(ns)
		steps := 1 + g.below(pick(g, 20, 50, 200))
		for index := uint64(1); index <= uint64(steps); index++ {
			cmd := g.next()
			t.Logf("%d: %v", index, cmd)
			ns.Apply(ids.Index(index), cmd)
			inodes, _ := ns.Touched()
			touched := make(map[ids.Inode]bool)
			for _, ino := range inodes {
				touched[ino] = true
			}
			after := keyedAnswers(ns)
			for query, old := range before {
				if touchesAny(touched, old.keys) {
					continue
				}
				if now, asked := after[query]; !asked {
					after[query] = old.again(ns)
					requireSame(t, old.result, after[query].result)
				} else {
					requireSame(t, old.result, now.result)
				}
			}
			before = after
		}
	})
}

// TestThatThereMayBeLeasesStays through a snapshot: who leads with it has to wait for them.
func TestThatThereMayBeLeasesStays(t *testing.T) {
	tr := newDriver(t)
	require.False(t, tr.ns.MayLease())
	yes := true
	tr.do(0, opOf(&storepb.SetLimits{Leases: &yes})).ok()
	require.True(t, restored(t, snapshotBytes(t, tr.ns.Snapshot())).MayLease())
	tr.do(0, opOf(&storepb.SetLimits{MaxSessions: 7})).ok()
	require.True(t, tr.ns.MayLease(), "of what is not said nothing changes")
	yes = false
	tr.do(0, opOf(&storepb.SetLimits{Leases: &yes})).ok()
	require.False(t, tr.ns.MayLease())
}

type keyed struct {
	query  *storepb.Query
	result *storepb.Result
	keys   []ids.Inode
}

func (k keyed) again(ns *Namespace) keyed { return answerWithKeys(ns, k.query) }

func answerWithKeys(ns *Namespace, query *storepb.Query) keyed {
	result := proto.Clone(ns.Query(query)).(*storepb.Result)
	inodes, _ := Keys(query, result)
	return keyed{query, result, inodes}
}

func touchesAny(touched map[ids.Inode]bool, inodes []ids.Inode) bool {
	for _, ino := range inodes {
		if touched[ino] {
			return true
		}
	}
	return false
}

// keyedAnswers asks about all inodes, and in all directories for names that are there and some that may come.
func keyedAnswers(ns *Namespace) map[string]keyed {
	answers := make(map[string]keyed)
	ask := func(query *storepb.Query) {
		key, _ := proto.MarshalOptions{Deterministic: true}.Marshal(query)
		answers[string(key)] = answerWithKeys(ns, query)
	}
	ns.tree.inodes.Scan(func(ino ids.Inode, in *inode) bool {
		ask(getAttr(uint64(ino)))
		ask(readOf(uint64(ino)))
		ask(xattrsOf(uint64(ino)))
		if in.isDir() {
			ask(readDirOf(uint64(ino), 0, 0))
			for _, name := range []string{"a", "b", "c", "d"} {
				ask(lookupOf(uint64(ino), name))
			}
		}
		for _, e := range ns.tree.namesOf(ino) {
			ask(lookupOf(uint64(e.parent), e.name))
			ask(&storepb.Query{Query: &storepb.Query_Read{Read: &storepb.Read{
				Ino: uint64(ino), Name: &storepb.Observation{Parent: uint64(e.parent), Name: []byte(e.name)},
			}}})
		}
		return true
	})
	return answers
}
