package namespace

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// allLocks reads the paths of all locks in pages.
func allLocks(tb testing.TB, ns *Namespace, page uint32) []string {
	var paths []string
	parent, name := uint64(0), ""
	for {
		locks := step{ns.Query(listLocks(parent, name, page)), tb}.ok().GetLocks()
		if len(locks) == 0 {
			return paths
		}
		require.LessOrEqual(tb, len(locks), page32(page))
		for _, lock := range locks {
			paths = append(paths, string(lock.GetPath()))
			parent, name = lock.GetParent(), string(lock.GetName())
		}
	}
}

func page32(limit uint32) int { return page(limit) }

func TestListLocksInPages(t *testing.T) {
	tr := newDriver(t)
	tr.file(RootIno, "b")
	dir := tr.mkdir(RootIno, "dir")
	tr.file(dir, "x")
	tr.file(tr.mkdir(dir, "sub"), "deep")
	tr.mkdir(RootIno, "empty")
	tr.create(RootIno, "a", syscall.S_IFIFO|0o600).ok()
	want := []string{"a", "b", "empty", "dir/x", "dir/sub/deep"}
	for _, page := range []uint32{1, 2, 3, 100, 0, math.MaxUint32} {
		require.Equal(t, want, allLocks(t, tr.ns, page), "pages of %d", page)
	}
	for i := range answerPage + 10 {
		tr.file(dir, nameOf(i))
	}
	require.Len(t, tr.ns.Query(listLocks(0, "", 0)).GetLocks(), answerPage)
	require.Len(t, allLocks(t, tr.ns, 0), answerPage+15)
	require.Len(t, allLocks(t, tr.ns, 7), answerPage+15)
	require.Empty(t, tr.ns.Query(listLocks(math.MaxUint64, "", 0)).GetLocks())
}

// TestListLocksLeavesOutTemporaryNames: what was killed before it gave the file a name holds nothing by that.
func TestListLocksLeavesOutTemporaryNames(t *testing.T) {
	tr := newDriver(t)
	left := lockfact.TemporaryName()
	tr.file(RootIno, left)
	tr.file(RootIno, "a.lock.0123456789abcdef.tmp")
	tr.file(RootIno, ".lockfs-mine")
	require.Equal(t, []string{".lockfs-mine"}, allLocks(t, tr.ns, 1))
	require.Equal(t, "held", step{tr.ns.Query(getLock(RootIno, left)), t}.ok().GetLocks()[0].GetState(), "who asks for it is told")
}

// TestListLocksGoesOnAfterWhatIsGone: the last of a page may be removed before the next is asked for.
func TestListLocksGoesOnAfterWhatIsGone(t *testing.T) {
	tr := newDriver(t)
	for _, name := range []string{"a", "b", "c"} {
		tr.file(RootIno, name)
	}
	tr.unlink(here, RootIno, "b").ok()
	locks := tr.ns.Query(listLocks(RootIno, "b", 0)).GetLocks()
	require.Len(t, locks, 1)
	require.Equal(t, "c", string(locks[0].GetName()))
}

func TestGetLock(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "dir")
	ino := tr.file(dir, "lock")
	facts := factsFor(storepb.Format_SEMAPHORE, "1", tr.now+int64(time.Minute))
	facts.Tag = "deploy"
	tr.fill(here, dir, "lock", facts).ok()
	result := step{tr.ns.Query(getLock(dir, "lock")), t}.ok()
	want := &storepb.Result{Attr: tr.attr(ino), Locks: []*storepb.Lock{{
		Parent: dir, Name: []byte("lock"), Path: []byte("dir/lock"), Token: 4, Acquired: tr.now - int64(time.Second),
		State: "held", Facts: facts, Attr: tr.attr(ino), Content: []byte("semaphore 1"),
		Because: "its content is of format semaphore", Remover: "programs on host here",
		Exclusive: true, MadeOn: "here", Evidence: "has a name that says lock and is short",
	}}}
	requireSame(t, want, withoutObservations(result))
	requireSame(t, &storepb.Observation{Parent: dir, Name: []byte("lock"), Token: 4}, result.GetObservations()[0])
	byIno := func(ino uint64) *storepb.Query {
		return &storepb.Query{Query: &storepb.Query_GetLock{GetLock: &storepb.GetLock{Ino: ino}}}
	}
	requireSame(t, want, withoutObservations(tr.ns.Query(byIno(ino))))
	tr.link(ino, RootIno, "name").ok()
	require.Equal(t, "name", string(tr.ns.Query(byIno(ino)).GetLocks()[0].GetPath()), "the first of its names")
	require.Equal(t, "dir", string(tr.ns.Query(byIno(dir)).GetLocks()[0].GetPath()))
	require.Empty(t, tr.ns.Query(byIno(dir)).GetLocks()[0].GetContent())
	for _, missing := range []*storepb.Query{
		byIno(RootIno), byIno(99), getLock(RootIno, "no"), getLock(99, "lock"), {Query: &storepb.Query_GetLock{}},
	} {
		require.Equal(t, storepb.Code_NOT_FOUND, tr.ns.Query(missing).GetCode(), "%v", missing)
	}
}

func TestListProcesses(t *testing.T) {
	tr := newDriver(t)
	for _, name := range []string{"a", "b", "c"} {
		tr.take(here, name, pidFacts(storepb.Format_PID, processOf(1)))
	}
	tr.take(here, "d", pidFacts(storepb.Format_PID, processOf(2)))
	tr.take(here, "unknown", pidFacts(storepb.Format_PID, nil))
	tr.take(here, "tower", towerFacts("x"))
	tr.take(there, "e", pidFacts(storepb.Format_BEADS, processOf(3)))
	processes := func(host string) []*storepb.Process { return tr.ns.Query(listProcesses(host)).GetProcesses() }
	require.Len(t, processes("here"), 2)
	requireSame(t, processOf(1), processes("here")[0])
	requireSame(t, processOf(2), processes("here")[1])
	requireSame(t, processOf(3), processes("there")[0])
	require.Empty(t, processes(""))
	for _, name := range []string{"a", "b", "c"} {
		tr.unlink(here, RootIno, name).ok()
	}
	require.Len(t, processes("here"), 1)
	tr.fill(here, RootIno, "d", nil).ok()
	require.Empty(t, processes("here"))
}

func TestListEvents(t *testing.T) {
	tr := newDriver(t)
	var times []int64
	for i := range 5 {
		tr.file(RootIno, nameOf(i))
		tr.announceAll()
		times = append(times, tr.now)
	}
	numbers := func(after uint64, since int64, limit uint32) (numbers []uint64) {
		for _, e := range (step{tr.ns.Query(listEvents(after, since, limit)), t}).ok().GetEvents() {
			numbers = append(numbers, e.GetNumber())
		}
		return numbers
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5}, numbers(0, 0, 0))
	require.Equal(t, []uint64{3, 4}, numbers(2, 0, 2))
	require.Equal(t, []uint64{4, 5}, numbers(0, times[3], 0))
	require.Equal(t, []uint64{4}, numbers(0, times[2]+1, 1))
	require.Equal(t, []uint64{5}, numbers(4, times[2], 0))
	require.Empty(t, numbers(5, 0, 0))
	require.Empty(t, numbers(math.MaxUint64, 0, 0))
	require.Empty(t, numbers(math.MaxUint64, times[0], 0))
	require.Empty(t, numbers(0, tr.now+1, 0))
	for i := range answerPage {
		tr.file(RootIno, nameOf(10+i))
	}
	require.Len(t, numbers(0, 0, 0), answerPage)
	require.Len(t, numbers(0, 1, 1<<31), answerPage)
}

// TestListEventsSelects events by kind, path and host, from either end. A hidden host matches nothing.
func TestListEventsSelects(t *testing.T) {
	tr := newOpenTree(t)
	dir := tr.mkdir(RootIno, "a")
	tr.lockAt(dir, "a/one", 0o644)
	tr.lockAt(dir, "a/two", 0o600)
	tr.lockAt(RootIno, "ab", 0o644)
	tr.announceAll()
	tr.unlink(here, dir, "one").ok()
	list := func(q *storepb.ListEvents) (found []string) {
		if q.GetViewer() == nil {
			q.Viewer = root
		}
		for _, e := range (queryEngine{&tr.ns.evaluator}).listEvents(q).GetEvents() {
			found = append(found, e.GetEvent()+" "+string(e.GetPath()))
		}
		return found
	}
	taken, given := "lock_acquired ", "lock_released "
	all := list(&storepb.ListEvents{Kinds: []string{eventAcquired, eventReleased}})
	require.Equal(t, []string{taken + "a", taken + "a/one", taken + "a/two", taken + "ab", given + "a/one"}, all)
	newest := slices.Clone(all)
	slices.Reverse(newest)
	last := (queryEngine{&tr.ns.evaluator}).listEvents(&storepb.ListEvents{Viewer: root}).GetLastEvent()
	everything := &storepb.ListEvents{Before: math.MaxUint64, Kinds: []string{eventAcquired, eventReleased}}
	require.Equal(t, newest, list(everything))
	everything.Limit = 1
	require.Equal(t, newest[:1], list(everything))
	require.Equal(t, newest[:1], list(&storepb.ListEvents{Before: last + 1, After: last - 1}))
	require.Empty(t, list(&storepb.ListEvents{Before: 1}))
	require.Equal(t, []string{given + "a/one"}, list(&storepb.ListEvents{Kinds: []string{eventReleased}}))
	require.Equal(t, []string{taken + "a", taken + "a/one", taken + "a/two", given + "a/one"}, list(&storepb.ListEvents{Below: []byte("a")}))
	require.Equal(t, []string{taken + "a/one", given + "a/one"}, list(&storepb.ListEvents{Below: []byte("a/one")}))
	for _, viewer := range []*storepb.Viewer{root, stranger} {
		for _, host := range []string{"here", "there", "elsewhere"} {
			var want []string
			for _, e := range (queryEngine{&tr.ns.evaluator}).listEvents(&storepb.ListEvents{Viewer: viewer}).GetEvents() {
				if e.GetHost() == host || e.GetBy().GetHost() == host {
					want = append(want, e.GetEvent()+" "+string(e.GetPath()))
				}
			}
			got := list(&storepb.ListEvents{Viewer: viewer, Host: host})
			require.Equal(t, want, got)
			require.Equal(t, host == "elsewhere", len(got) == 0)
			if viewer == stranger {
				require.NotContains(t, got, taken+"a/two")
			}
		}
	}
}

// TestAnswersFitWhateverUsersHave: who has many advisory locks, or much to say of one lock, keeps nobody from a list of all.
func TestAnswersFitWhateverUsersHave(t *testing.T) {
	const most = 2 << 20 // far below what a frame takes
	tr := newDriver(t)
	facts := factsFor(storepb.Format_SEMAPHORE, "x", 0)
	facts.Tag = strings.Repeat("t", MaxContent)
	const locks = 40
	for i := range locks {
		name := fmt.Sprint("lock", i)
		tr.create(RootIno, name, someFile).ok()
		tr.fill(here, RootIno, name, facts).ok()
	}
	ino := tr.create(RootIno, "file", someFile).ok().GetAttr().GetIno()
	tr.do(here, opOf(&storepb.TakeLock{Ino: ino, Type: storepb.LockType_EXCLUSIVE, Owner: 1, End: math.MaxInt64, Session: here})).ok()
	for i := range uint64(100_000) {
		tr.ns.locks.Restore(&storepb.AdvisoryLock{
			Ino: ino, Kind: storepb.LockKind_RECORD, Type: exclusive, Session: here, Owner: 1, Start: 2 * i, End: 2 * i, Seq: 1,
		}, "h")
		in, _ := tr.ns.tree.inode(ids.Inode(ino))
		tr.ns.noteKernelLock(in)
	}
	ask := func(query *storepb.Query) *storepb.Result {
		t.Helper()
		result := step{tr.ns.Query(query), t}.ok()
		require.LessOrEqual(t, proto.Size(result), most)
		return result
	}
	listed, next := 0, &storepb.ListLocks{Viewer: root}
	for {
		page := ask(&storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: next}}).GetLocks()
		if len(page) == 0 {
			break
		}
		listed += len(page)
		next.AfterParent, next.AfterName = page[len(page)-1].GetParent(), page[len(page)-1].GetName()
	}
	require.Equal(t, locks+1, listed)
	ask(&storepb.Query{Query: &storepb.Query_GetLock{GetLock: &storepb.GetLock{Ino: ino}}})
	ask(&storepb.Query{Query: &storepb.Query_ListAdvisoryLocks{ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Viewer: root}}})
}
