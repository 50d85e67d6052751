package namespace

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func TestPermits(t *testing.T) {
	const all = MayRead | MayWrite | MaySearch
	for _, row := range []struct {
		viewer     *storepb.Viewer
		mode, need uint32
		want       bool
	}{
		{nil, 0o777, MayRead, false},
		{&storepb.Viewer{}, 0o000, all, true},
		{&storepb.Viewer{Uid: 5}, 0o700, all, true},
		{&storepb.Viewer{Uid: 5}, 0o400, MayWrite, false},
		{&storepb.Viewer{Uid: 5}, 0o077, MayRead, false}, // the owner has the owner's only
		{&storepb.Viewer{Uid: 5, Gid: 6}, 0o077, MayRead, false},
		{&storepb.Viewer{Uid: 7, Gid: 6}, 0o070, all, true},
		{&storepb.Viewer{Uid: 7, Gid: 6}, 0o707, MayRead, false}, // a member has the group's only
		{&storepb.Viewer{Uid: 7, Gid: 8, Groups: []uint32{9, 6}}, 0o040, MayRead, true},
		{&storepb.Viewer{Uid: 7, Gid: 8, Groups: []uint32{9, 6}}, 0o704, MayRead, false},
		{&storepb.Viewer{Uid: 7, Gid: 8, Groups: []uint32{9}}, 0o770, MaySearch, false},
		{&storepb.Viewer{Uid: 7, Gid: 8, Groups: []uint32{9}}, 0o001, MaySearch, true},
		{&storepb.Viewer{Uid: 7, Gid: 8}, 0o004, MayRead | MaySearch, false},
		{&storepb.Viewer{Uid: 7, Gid: 8}, 0o1005, MayRead | MaySearch, true}, // the sticky bit is about something else
		{&storepb.Viewer{Uid: 7, Gid: 8, MoreGroups: true}, 0o704, MayRead, false},
		{&storepb.Viewer{Uid: 7, Gid: 8, MoreGroups: true}, 0o740, MayRead, false},
		{&storepb.Viewer{Uid: 7, Gid: 8, MoreGroups: true}, 0o044, MayRead, true},
		{&storepb.Viewer{Uid: 7, Gid: 6, MoreGroups: true}, 0o040, MayRead, true},
	} {
		got := Permits(row.viewer, &storepb.Attr{Mode: syscall.S_IFREG | row.mode, Uid: 5, Gid: 6}, row.need)
		require.Equal(t, row.want, got, "%v %o %o", row.viewer, row.mode, row.need)
	}
}

// Whoever looks in the following: all that is made is uid 7's, of group 8.
var (
	owner    = &storepb.Viewer{Uid: 7, Gid: 7}
	member   = &storepb.Viewer{Uid: 9, Gid: 9, Groups: []uint32{1, 8}}
	stranger = &storepb.Viewer{Uid: 9, Gid: 9}
	viewers  = map[string]*storepb.Viewer{"root": root, "owner": owner, "member": member, "stranger": stranger}
)

func (tr *driver) chmod(ino uint64, mode uint32) {
	tr.tb.Helper()
	tr.do(here, opOf(&storepb.SetAttr{Ino: ino, Mode: proto.Uint32(mode)})).ok()
}

// newOpenTree is a tree whose root is everybody's, as that of a mount.
func newOpenTree(tb testing.TB) *driver {
	tr := newDriver(tb)
	tr.chmod(RootIno, 0o1777)
	return tr
}

// lockAt makes a lock of another host, whose holder is named like its path.
func (tr *driver) lockAt(dir uint64, path string, mode uint32) uint64 {
	tr.tb.Helper()
	name := path[strings.LastIndexByte(path, '/')+1:]
	ino := tr.create(dir, name, syscall.S_IFREG|mode).ok().GetAttr().GetIno()
	tr.soon().fill(there, dir, name, factsFor(storepb.Format_SWARM, "of "+path, 0)).ok()
	return ino
}

// told are the paths of the locks of which a viewer is told, those of which he is told whose they are with a "+".
func (tr *driver) told(viewer *storepb.Viewer) (told []string) {
	tr.tb.Helper()
	query := &storepb.ListLocks{Viewer: viewer, Limit: 2}
	for {
		locks := step{tr.ns.Query(&storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: query}}), tr.tb}.ok().GetLocks()
		if len(locks) == 0 {
			slices.Sort(told)
			return told
		}
		for _, lock := range locks {
			path := string(lock.GetPath())
			if lock.GetFacts() != nil {
				require.Equal(tr.tb, "of "+path, lock.GetFacts().GetHolder())
				path += "+"
			} else {
				requireSame(tr.tb, &storepb.Lock{
					Parent: lock.GetParent(), Name: lock.GetName(), Path: lock.GetPath(), Acquired: lock.GetAcquired(), Attr: lock.GetAttr(),
				}, lock)
				require.NotZero(tr.tb, lock.GetAcquired())
			}
			told = append(told, path)
			query.AfterParent, query.AfterName = lock.GetParent(), lock.GetName()
		}
	}
}

// TestLocksAreToldToWhomCouldReachAndReadThem, by the permissions of each directory on the way.
func TestLocksAreToldToWhomCouldReachAndReadThem(t *testing.T) {
	tr := newOpenTree(t)
	closed, blind, group := tr.mkdir(RootIno, "closed"), tr.mkdir(RootIno, "blind"), tr.mkdir(RootIno, "group")
	deep := tr.mkdir(closed, "open")
	tr.lockAt(RootIno, "public", 0o644)
	tr.lockAt(RootIno, "private", 0o600)
	tr.lockAt(RootIno, "shared", 0o640)
	tr.lockAt(RootIno, "strangers", 0o604)
	tr.lockAt(closed, "closed/public", 0o644)
	tr.lockAt(deep, "closed/open/public", 0o644)
	tr.lockAt(blind, "blind/public", 0o644)
	tr.lockAt(blind, "blind/private", 0o400)
	tr.lockAt(group, "group/shared", 0o640)
	tr.lockAt(group, "group/public", 0o644)
	tr.chmod(closed, 0o700)
	tr.chmod(deep, 0o777)
	tr.chmod(blind, 0o711) // to be searched, not listed
	tr.chmod(group, 0o750)

	everything := []string{
		"blind/private+", "blind/public+", "closed/open/public+", "closed/public+", "group/public+", "group/shared+", "private+",
		"public+", "shared+", "strangers+",
	}
	require.Equal(t, everything, tr.told(root))
	require.Equal(t, everything, tr.told(owner))
	require.Equal(t, []string{
		"blind/private", "blind/public+", "group/public+", "group/shared+", "private", "public+", "shared+", "strangers",
	}, tr.told(member))
	require.Equal(t, []string{"blind/private", "blind/public+", "private", "public+", "shared", "strangers+"}, tr.told(stranger))

	// A symbolic link is no way.
	tr.do(here, dataNamed(opOf(&storepb.Create{
		Parent: RootIno, Name: []byte("way"), Mode: syscall.S_IFLNK | 0o777, Target: []byte("closed/open"),
	}))).ok()
	require.NotContains(t, strings.Join(tr.told(stranger), " "), "way/")
	require.NotContains(t, strings.Join(tr.told(stranger), " "), "closed")

	tr.chmod(RootIno, 0o700)
	require.Empty(t, tr.told(stranger))
	require.Equal(t, storepb.Code_INVALID, queryEngine{&tr.ns.evaluator}.listLocks(&storepb.ListLocks{}).GetCode(), "who wants to know?")
}

// TestAdvisoryLocksAreToldToWhomCouldReadTheFile, and of a file without a name to root.
func TestAdvisoryLocksAreToldToWhomCouldReadTheFile(t *testing.T) {
	tr := newOpenTree(t)
	closed := tr.mkdir(RootIno, "closed")
	inos := map[uint64]string{
		tr.file(RootIno, "public"): "public", tr.lockAt(RootIno, "private", 0o600): "private", tr.file(closed, "in"): "in",
		tr.file(RootIno, "gone"): "gone",
	}
	tr.chmod(closed, 0o700)
	for ino := range inos {
		tr.do(here, opOf(&storepb.TakeLock{
			Ino: ino, Kind: storepb.LockKind_FLOCK, Type: storepb.LockType_EXCLUSIVE, Owner: ino, Session: here,
		})).ok()
	}
	tr.do(there, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("gone"), Pin: tr.at(RootIno, "gone")})).ok()
	for who, want := range map[string]string{"root": "gone in private public", "owner": "in private public", "stranger": "public"} {
		var told []string
		for _, lock := range (queryEngine{&tr.ns.evaluator}).listAdvisories(&storepb.ListAdvisoryLocks{Viewer: viewers[who]}).GetAdvisoryLocks() {
			told = append(told, inos[lock.GetIno()])
		}
		slices.Sort(told)
		require.Equal(t, want, strings.Join(told, " "), who)
	}
}

// toldEvents are the events of which a viewer is told, as "event path", those of which he is told all with a "+".
func (tr *driver) toldEvents(viewer *storepb.Viewer) (told []string) {
	tr.tb.Helper()
	query := &storepb.ListEvents{Viewer: viewer, Limit: 3}
	for {
		result := step{tr.ns.Query(&storepb.Query{Query: &storepb.Query_ListEvents{ListEvents: query}}), tr.tb}.ok()
		for _, e := range result.GetEvents() {
			line := strings.TrimSpace(e.GetEvent() + " " + string(e.GetPath()))
			if e.GetToken() != 0 {
				line += "+"
			} else if len(e.GetPath()) > 0 {
				requireSame(tr.tb, &storepb.Event{Number: e.GetNumber(), Time: e.GetTime(), Event: e.GetEvent(), Path: e.GetPath()}, e)
			}
			told = append(told, line)
			query.After = e.GetNumber()
		}
		if len(result.GetEvents()) < 3 {
			require.Equal(tr.tb, tr.lastEvent(), result.GetLastEvent())
			return told
		}
	}
}

func TestEventsAreToldToWhomCouldReachAndReadTheLock(t *testing.T) {
	tr := newOpenTree(t)
	closed := tr.mkdir(RootIno, "closed")
	tr.lockAt(RootIno, "public", 0o644)
	tr.lockAt(RootIno, "private", 0o600)
	tr.lockAt(closed, "closed/public", 0o644)
	tr.chmod(closed, 0o750)
	tr.announceAll()
	tr.fill(there, RootIno, "private", factsFor(storepb.Format_SWARM, "thief", 0)).ok()
	tr.do(0, opOf(&storepb.ForgetHost{Name: "away"}))
	tr.giveUp(there)
	for _, name := range []string{"public", "private"} {
		tr.unlink(here, RootIno, name).ok()
	}
	tr.unlink(here, closed, "public").ok()
	everything := tr.toldEvents(root)
	require.Len(t, everything, int(tr.lastEvent()))
	require.Subset(t, everything, []string{"lock_acquired closed/public+", "lock_stolen private+", "session_ended", "host_unreachable"})
	require.Equal(t, everything, tr.toldEvents(owner))

	// By stat(2) one sees names come and go. What is about hosts is for everybody.
	require.Equal(t, leaving(everything, func(line *string) bool {
		*line = strings.Replace(*line, " private+", " private", 1)
		return *line == "lock_stolen private"
	}), tr.toldEvents(member))
	require.Equal(t, leaving(everything, func(line *string) bool {
		*line = strings.Replace(*line, " private+", " private", 1)
		return strings.Contains(*line, "closed/") || *line == "lock_stolen private"
	}), tr.toldEvents(stranger))
}

func leaving(lines []string, leftOut func(line *string) bool) (kept []string) {
	for _, line := range lines {
		if !leftOut(&line) {
			kept = append(kept, line)
		}
	}
	return kept
}

// TestEventsOfADirectoryThatIsGone are for root and for who did it: not for who makes a directory of that name anew, nor for who
// reaches the directory where it was moved to.
func TestEventsOfADirectoryThatIsGone(t *testing.T) {
	tr := newOpenTree(t)
	secret := tr.mkdir(RootIno, "secret")
	inner := tr.mkdir(secret, "inner")
	tr.chmod(secret, 0o700)
	tr.lockAt(secret, "secret/a", 0o644)
	tr.lockAt(inner, "secret/inner/b", 0o644)
	tr.announceAll()
	about := func(viewer *storepb.Viewer) string { return strings.Join(tr.toldEvents(viewer), " ") }
	require.NotContains(t, about(stranger), "secret/")
	require.Contains(t, about(owner), "secret/a")

	tr.rename(secret, "inner", RootIno, "moved").ok()
	require.NotContains(t, about(stranger), "secret/", "its events are of another path")
	tr.unlink(here, secret, "a").ok()
	tr.rmdir(RootIno, "secret").ok()
	anew := tr.mkdir(RootIno, "secret")
	tr.chmod(anew, 0o777)
	require.NotContains(t, about(stranger), "secret/", "it is another directory of that name")
	require.Contains(t, about(owner), "lock_released secret/a+")
	require.Contains(t, about(root), "lock_released secret/a+")
	require.NotContains(t, about(&storepb.Viewer{Uid: 10, Gid: 8}), "secret/")
	tr.restart()
	require.NotContains(t, about(stranger), "secret/")
	require.Contains(t, about(owner), "lock_released secret/a+")
}

// TestAStolenLockIsToldOfByWhatCouldBeReadOfEach, the one before and the one after.
func TestAStolenLockIsToldOfByWhatCouldBeReadOfEach(t *testing.T) {
	tr := newOpenTree(t)
	tr.lockAt(RootIno, "lock", 0o600)
	tr.announceAll()
	tr.lockAt(RootIno, "tmp", 0o644)
	tr.announceAll()
	tr.rename(RootIno, "tmp", RootIno, "lock").ok()
	stolen := func(viewer *storepb.Viewer) *storepb.Event {
		for _, e := range (queryEngine{&tr.ns.evaluator}).listEvents(&storepb.ListEvents{Viewer: viewer}).GetEvents() {
			if e.GetEvent() == eventStolen {
				return e
			}
		}
		require.Fail(t, "nothing is told")
		return nil
	}
	require.Equal(t, "of lock", stolen(owner).GetPrevious().GetHolder())
	require.NotEmpty(t, stolen(root).GetPreviousHash())
	require.NotEmpty(t, stolen(root).GetHash())
	require.NotEmpty(t, stolen(root).GetBefore())
	for _, other := range []*storepb.Viewer{owner, stranger} {
		require.Empty(t, stolen(other).GetHash(), "it tells of what is between two events")
		require.Empty(t, stolen(other).GetBefore())
	}
	require.Equal(t, "of tmp", stolen(stranger).GetHolder())
	require.Nil(t, stolen(stranger).GetPrevious())
	require.Empty(t, stolen(stranger).GetPreviousHash())
}

// TestWhoMayReachADirectoryIsDecidedOnce in a query, however many locks are in it and however deep it is.
func TestWhoMayReachADirectoryIsDecidedOnce(t *testing.T) {
	tr := newOpenTree(t)
	dirs := tr.chain(RootIno, 50)
	v := queryEngine{&tr.ns.evaluator}.viewOf(stranger)
	require.True(t, v.canSee(ids.Inode(dirs[49])))
	require.Len(t, v.dirs, 51)
	tr.chmod(dirs[10], 0o700)
	require.True(t, v.canSee(ids.Inode(dirs[49])), "decided")
	require.False(t, queryEngine{&tr.ns.evaluator}.viewOf(stranger).canSee(ids.Inode(dirs[49])))
	require.True(t, queryEngine{&tr.ns.evaluator}.viewOf(stranger).canSee(ids.Inode(dirs[9])))
}

// BenchmarkListLocksOfAViewer lists 100,000 locks, a thousand in each directory.
func BenchmarkListLocksOfAViewer(b *testing.B) {
	tr := newOpenTree(b)
	dir := uint64(RootIno)
	for i := range 100_000 {
		if i%1000 == 0 {
			dir = tr.chain(tr.mkdir(RootIno, nameOf(i)), 10)[9]
		}
		cmd := tr.next(here, createOp(dir, nameOf(i), true))
		cmd.Acked = cmd.GetSeq() - 1
		tr.apply(cmd).ok()
	}
	for who, viewer := range map[string]*storepb.Viewer{"root": root, "stranger": stranger} {
		b.Run(who, func(b *testing.B) {
			for range b.N {
				count := 0
				query := &storepb.ListLocks{Viewer: viewer}
				for {
					locks := queryEngine{&tr.ns.evaluator}.listLocks(query).GetLocks()
					if len(locks) == 0 {
						break
					}
					count += len(locks)
					query.AfterParent, query.AfterName = locks[len(locks)-1].GetParent(), locks[len(locks)-1].GetName()
				}
				require.Equal(b, 100_000, count)
			}
		})
	}
}
