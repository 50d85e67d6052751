package namespace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// dirPath is the path of a directory, or of none.
func (g *generator) dirPath() []byte {
	if e := g.ns.tree.nameOf(ids.Inode(g.dir())); e != nil {
		return []byte(g.ns.tree.path(e))
	}
	return nil
}

// setQuota is for a directory, or for user 7.
func (g *generator) setQuota() *storepb.SetQuota {
	return &storepb.SetQuota{Path: g.dirPath(), Quota: &storepb.Quota{
		Uid: 7, MaxInodes: pick[uint64](g, 0, 1, 3, 6, 1000), MaxBytes: pick[uint64](g, 0, 1<<11, 5<<10, 10<<10, 1<<20),
	}}
}

// usedIn counts what is in a directory by going up from each name.
func usedIn(ns *Namespace, dir ids.Inode) (used usage) {
	ns.tree.byName.Scan(func(e *entry) bool {
		for above := e.parent; ; {
			if above == dir {
				in, _ := ns.tree.inode(e.ino)
				used.add(1, in.bytesByName()+e.bytes())
				return true
			}
			if above == RootIno {
				return true
			}
			in, _ := ns.tree.inode(above)
			above = in.parent
		}
	})
	return used
}

// requireQuotasCounted counts everything anew.
func requireQuotasCounted(t require.TestingT, ns *Namespace) {
	ns.tree.quotas.byDir.Scan(func(dir ids.Inode, _ *storepb.Quota) bool {
		require.Equal(t, usedIn(ns, dir), ns.tree.below[dir].used, "in directory %d", dir)
		return true
	})
}

// TestQuotasCountWhatIsThere after commands of all kinds: nothing that succeeds adds names beyond a quota.
func TestQuotasCountWhatIsThere(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = g.often(40)
		for index := range 1 + g.below(pick(g, 50, 150, 300)) {
			cmd := g.next()
			if g.often(15) {
				cmd = &storepb.Command{Time: g.now, Op: pick(g, opOf(g.setQuota()), opOf(g.setQuota()), opOf(&storepb.DeleteQuota{Path: g.dirPath(), Uid: 7}))}
			}
			before := map[ids.Inode]usage{}
			ns.tree.quotas.byDir.Scan(func(dir ids.Inode, _ *storepb.Quota) bool {
				before[dir] = ns.tree.below[dir].used
				return true
			})
			result := g.ns.Apply(ids.Index(index+1), cmd)
			requireQuotasCounted(t, ns)
			if result.GetCode() == storepb.Code_QUOTA {
				refused++
			}
			if _, undoes := cmd.GetOp().GetOp().(*storepb.Op_Cancel); undoes {
				continue
			}
			ns.tree.quotas.byDir.Scan(func(dir ids.Inode, _ *storepb.Quota) bool {
				used := &ns.tree.below[dir].used
				if was, known := before[dir]; known && used.inodes > was.inodes {
					require.LessOrEqual(t, used.inodes, ns.tree.quotaOf(dir).inodes, "%v", cmd)
				}
				if was, known := before[dir]; known && used.bytes > was.bytes {
					require.LessOrEqual(t, used.bytes, ns.tree.quotaOf(dir).bytes, "%v", cmd)
				}
				return true
			})
			if g.often(5) {
				again := restored(t, snapshotBytes(t, ns.Snapshot()))
				requireQuotasCounted(t, again)
				require.Equal(t, fmt.Sprint(ns.tree.listQuotas()), fmt.Sprint(again.tree.listQuotas()))
			}
		}
	})
	t.Log(refused, "refused")
}

func (tr *driver) quota(path string, inodes, bytes uint64) step {
	return tr.do(0, opOf(&storepb.SetQuota{Path: []byte(path), Quota: &storepb.Quota{MaxInodes: inodes, MaxBytes: bytes}}))
}

// TestQuotaOfDirectory binds all users at any depth, goes with the directory, and ends with it.
func TestQuotaOfDirectory(t *testing.T) {
	tr := newDriver(t)
	ci := tr.mkdir(RootIno, "ci")
	deep := tr.mkdir(ci, "deep")
	tr.quota("ci", 3, 0).ok()
	tr.file(deep, "a")
	tr.file(ci, "b")
	tr.create(deep, "c", someFile).is(storepb.Code_QUOTA)
	asRoot := tr.next(here, createOp(deep, "c", true))
	asRoot.Caller.Uid = 0
	tr.apply(asRoot).is(storepb.Code_QUOTA)
	tr.create(deep, "d", someDir).is(storepb.Code_QUOTA)
	outside := tr.file(RootIno, "outside")
	tr.link(outside, ci, "c").is(storepb.Code_QUOTA)
	tr.rename(RootIno, "outside", deep, "c").is(storepb.Code_QUOTA)
	tr.rename(RootIno, "outside", deep, "a").ok() // takes a's place
	tr.rename(ci, "b", deep, "b").ok()            // stays within
	tr.rename(RootIno, "ci", RootIno, "moved").ok()
	tr.create(ci, "e", someFile).is(storepb.Code_QUOTA)
	tr.unlink(here, deep, "b").ok()
	tr.file(ci, "e")
	listed := tr.ns.Query(&storepb.Query{Query: &storepb.Query_ListQuotas{ListQuotas: &storepb.ListQuotas{}}}).GetQuotas()
	require.Len(t, listed, 1)
	require.Equal(t, "moved", string(listed[0].GetPath()))
	require.EqualValues(t, 3, listed[0].GetInodes())
	tr.quota("nowhere", 1, 0).is(storepb.Code_NOT_FOUND)
	tr.quota("moved/e", 1, 0).is(storepb.Code_NOT_DIRECTORY)
	tr.quota("/", 1, 0).is(storepb.Code_INVALID)
	tr.quota("moved", 0, 0).is(storepb.Code_INVALID)

	tr.unlink(here, deep, "a").ok()
	tr.rmdir(ci, "deep").ok()
	tr.unlink(here, ci, "e").ok()
	tr.rmdir(RootIno, "moved").ok()
	require.Empty(t, tr.ns.tree.listQuotas())
	requireHash(t, tr.ns)
}

// TestNestedQuotas moves whole trees between them, and exchanges them.
func TestNestedQuotas(t *testing.T) {
	tr := newDriver(t)
	outer := tr.mkdir(RootIno, "outer")
	inner, other := tr.mkdir(outer, "inner"), tr.mkdir(RootIno, "other")
	tree := tr.mkdir(other, "tree")
	for i := range 4 {
		tr.file(tree, nameOf(i))
	}
	tr.quota("outer", 7, 0).ok()
	tr.quota("outer/inner", 5, 0).ok()
	tr.quota("other", 5, 0).ok()
	tr.rename(other, "tree", inner, "tree").ok()
	requireQuotasCounted(t, tr.ns)
	tr.create(inner, "x", someFile).is(storepb.Code_QUOTA)
	tr.file(outer, "x")
	tr.create(outer, "y", someFile).is(storepb.Code_QUOTA)
	small := tr.mkdir(other, "small")
	tr.file(small, "one")
	tr.exchange(inner, "tree", other, "small").ok()
	requireQuotasCounted(t, tr.ns)
	tr.file(outer, "y")
	tr.file(outer, "z")
	tr.exchange(inner, "tree", other, "small").is(storepb.Code_QUOTA)
	tr.do(0, opOf(&storepb.DeleteQuota{Path: []byte("outer")})).ok()
	tr.do(0, opOf(&storepb.DeleteQuota{Path: []byte("outer")})).is(storepb.Code_NOT_FOUND)
	tr.exchange(inner, "tree", other, "small").ok()
	requireQuotasCounted(t, tr.ns)
}

// TestQuotaOfBytes counts contents, attributes and names, once for each name; what is there can always be written again.
func TestQuotaOfBytes(t *testing.T) {
	tr := newDriver(t)
	ci := tr.mkdir(RootIno, "ci")
	const quota = 8 << 10
	tr.quota("ci", 0, quota).ok()
	ino := tr.file(ci, "f")
	long := string(make([]byte, quota))
	tr.write(here, ino, long).is(storepb.Code_QUOTA)
	tr.write(here, ino, long[:quota/2]).ok()
	tr.link(ino, ci, "g").is(storepb.Code_QUOTA)
	tr.link(ino, RootIno, "g").ok()
	tr.do(here, opOf(&storepb.SetXattr{Ino: ino, Name: []byte("user.a"), Value: []byte(long[:4000])})).is(storepb.Code_QUOTA)
	stats := tr.ns.Query(&storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{Uid: 7, Ino: ci}}}).GetFsStats()
	require.EqualValues(t, quota, stats.GetMaxBytes())
	require.Equal(t, usedIn(tr.ns, ids.Inode(ci)).bytes, stats.GetBytes())
	require.Equal(t, quota-stats.GetBytes(), stats.GetFreeBytes())
	require.Equal(t, tr.ns.Usage().GetMaxInodes(), stats.GetMaxInodes())
	tr.quota("ci", 0, 1).ok()
	tr.write(here, ino, "").ok()
	tr.write(here, ino, "held").ok()
	requireQuotasCounted(t, tr.ns)
}

// TestQuotaOfUser takes the place of his share.
func TestQuotaOfUser(t *testing.T) {
	tr := newDriver(t)
	set := func(uid uint32, inodes uint64) step {
		return tr.do(0, opOf(&storepb.SetQuota{Quota: &storepb.Quota{Uid: uid, MaxInodes: inodes}}))
	}
	set(0, 1).is(storepb.Code_INVALID)
	set(7, 2).ok()
	tr.file(RootIno, "a")
	tr.file(RootIno, "b")
	tr.create(RootIno, "c", someFile).is(storepb.Code_QUOTA)
	set(7, 3).ok()
	tr.file(RootIno, "c")
	listed := tr.ns.tree.listQuotas()
	require.Len(t, listed, 1)
	require.EqualValues(t, 7, listed[0].GetQuota().GetUid())
	require.EqualValues(t, 3, listed[0].GetInodes())
	tr.do(0, opOf(&storepb.DeleteQuota{Uid: 7})).ok()
	tr.file(RootIno, "d")
}

// TestQuotaOfAFileWithNamesInOthers has each directory count what its own names know of the holder, and the growth of the file.
func TestQuotaOfAFileWithNamesInOthers(t *testing.T) {
	tr := newDriver(t)
	facts := func(holder int) *storepb.Facts {
		return &storepb.Facts{Format: storepb.Format_PID, Holder: strings.Repeat("h", holder)}
	}
	fill := func(dir uint64, holder, content int) step {
		op := tr.fillOp(here, dir, "f", facts(holder))
		op.Content = make([]byte, content)
		return tr.do(here, opOf(op))
	}
	used := func(dir uint64) uint64 { return usedIn(tr.ns, ids.Inode(dir)).bytes }
	twice := func(name string) (dir uint64) {
		dir = tr.mkdir(RootIno, name)
		ino := tr.file(dir, "f")
		tr.link(ino, dir, "g").ok()
		return dir
	}
	free := twice("free")
	fill(free, 600, 900).ok()
	exact := twice("exact")
	tr.quota("exact", 0, used(free)-1).ok()
	fill(exact, 600, 900).is(storepb.Code_QUOTA)
	tr.quota("exact", 0, used(free)).ok()
	fill(exact, 600, 900).ok()
	require.Equal(t, used(free), used(exact))

	one := tr.mkdir(RootIno, "one")
	ino := tr.file(one, "f")
	for i := range 3 {
		tr.link(ino, RootIno, nameOf(i)).ok()
	}
	fill(one, 600, 0).ok()
	tr.quota("one", 0, used(one)).ok()
	fill(one, 1, 1200).is(storepb.Code_QUOTA)
	fill(one, 1, 900).ok()
	requireQuotasCounted(t, tr.ns)
}

// TestQuotasAreTold to all if they are of users, and of a directory to those who could list it.
func TestQuotasAreTold(t *testing.T) {
	tr := newOpenTree(t)
	tr.mkdir(RootIno, "open")
	tr.chmod(tr.mkdir(RootIno, "closed"), 0o700)
	for range 2 { // asked again, it is the same
		tr.quota("open", 5, 0).ok()
		tr.quota("closed", 0, 4096).ok()
		tr.do(0, opOf(&storepb.SetQuota{Quota: &storepb.Quota{Uid: 9, MaxInodes: 3, MaxBytes: 1}})).ok()
	}
	tr.do(0, opOf(&storepb.DeleteQuota{Path: []byte("open")})).ok()
	tr.do(0, opOf(&storepb.DeleteQuota{Path: []byte("closed")})).ok()
	tr.do(0, opOf(&storepb.DeleteQuota{Uid: 9})).ok()
	told := func(viewer *storepb.Viewer) (told []string) {
		for _, e := range (queryEngine{&tr.ns.evaluator}).listEvents(&storepb.ListEvents{Viewer: viewer}).GetEvents() {
			if strings.HasPrefix(e.GetEvent(), "quota_") {
				told = append(told, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.GetEvent(), e.GetPath(), e.GetReason())))
			}
		}
		return told
	}
	require.Equal(t, []string{
		"quota_set open 5 inodes", "quota_set closed 4096 bytes", "quota_set  of user 9: 3 inodes, 1 bytes",
		"quota_deleted open", "quota_deleted closed", "quota_deleted  of user 9",
	}, told(root))
	require.Equal(t, []string{
		"quota_set open 5 inodes", "quota_set  of user 9: 3 inodes, 1 bytes", "quota_deleted open", "quota_deleted  of user 9",
	}, told(stranger))
}
