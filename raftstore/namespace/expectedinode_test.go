package namespace

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// TestTheStickyBitHoldsAcrossHosts: the kernel has judged one inode, and another one is there now.
func TestTheStickyBitHoldsAcrossHosts(t *testing.T) {
	const root, owner, other = 0, 1000, 1001
	lock, free := []byte("lock"), []byte("free")
	for _, way := range []struct {
		name   string
		op     func(dir uint64, judged *uint64) *storepb.Op
		absent bool // the kernel may have found nothing there
	}{
		{"unlink", func(dir uint64, judged *uint64) *storepb.Op {
			return opOf(&storepb.Unlink{Parent: dir, Name: lock, Judged: judged})
		}, false},
		{"by force", func(dir uint64, judged *uint64) *storepb.Op {
			return opOf(&storepb.Unlink{Parent: dir, Name: lock, Force: true, Judged: judged})
		}, false},
		{"rename", func(dir uint64, judged *uint64) *storepb.Op {
			return opOf(&storepb.Rename{Parent: dir, Name: lock, NewParent: dir, NewName: free, Judged: judged})
		}, false},
		{"replace", func(dir uint64, judged *uint64) *storepb.Op {
			return opOf(&storepb.Rename{Parent: dir, Name: []byte("mine"), NewParent: dir, NewName: lock, NewJudged: judged})
		}, true},
		{"exchange", func(dir uint64, judged *uint64) *storepb.Op {
			return opOf(&storepb.Rename{
				Parent: dir, Name: []byte("mine"), NewParent: dir, NewName: lock, NewJudged: judged, Exchange: true,
			})
		}, false},
	} {
		for _, row := range []struct {
			mode       uint32
			by, owner  uint32
			isJudged   bool
			notTouched bool
		}{
			{0o1777, other, owner, false, true},
			{0o1777, other, owner, true, false},
			{0o1777, other, other, false, false},
			{0o1777, root, owner, false, false},
			{0o777, other, owner, false, false},
		} {
			t.Run(fmt.Sprintf("%s %o by %d of %d, judged %v", way.name, row.mode, row.by, row.owner, row.isJudged), func(t *testing.T) {
				tr := newDriver(t)
				dir := tr.mkdir(RootIno, "d")
				tr.do(here, opOf(&storepb.SetAttr{Ino: dir, Mode: &row.mode})).ok()
				earlier := tr.file(dir, "lock")
				tr.unlink(here, dir, "lock").ok()
				ino := tr.file(dir, "lock")
				tr.do(here, opOf(&storepb.SetAttr{Ino: ino, Uid: &row.owner})).ok()
				mine := tr.file(dir, "mine")
				tr.do(here, opOf(&storepb.SetAttr{Ino: mine, Uid: &row.by})).ok()

				try := func(judged uint64, code storepb.Code) {
					t.Helper()
					cmd := tr.next(there, way.op(dir, &judged))
					cmd.Caller.Uid = row.by
					tr.apply(cmd).is(code)
				}
				if !row.notTouched {
					judged := earlier
					if row.isJudged {
						judged = ino
					}
					try(judged, storepb.Code_OK)
					return
				}
				try(earlier, storepb.Code_NOT_JUDGED)
				if way.absent {
					try(0, storepb.Code_NOT_JUDGED)
				}
				require.Equal(t, ino, tr.at(dir, "lock"))
				cmd := tr.next(there, way.op(dir, nil))
				cmd.Caller.Uid = row.by
				tr.apply(cmd).ok() // whose kernel's judgement is not known
			})
		}
	}
}

// openDir makes a directory that everybody may write to.
func (tr *driver) openDir(name string) uint64 {
	tr.tb.Helper()
	dir, mode := tr.mkdir(RootIno, name), uint32(0o777)
	tr.do(here, opOf(&storepb.SetAttr{Ino: dir, Mode: &mode})).ok()
	return dir
}

// TestDirectoriesThatWereNotJudgedStayWhereTheyAre: to move one elsewhere takes the right to write to it.
func TestDirectoriesThatWereNotJudgedStayWhereTheyAre(t *testing.T) {
	tr := newDriver(t)
	from, to := tr.openDir("from"), tr.openDir("to")
	moved := tr.mkdir(from, "d")
	move := func(parent uint64, judged uint64) step {
		cmd := tr.next(there, opOf(&storepb.Rename{
			Parent: from, Name: []byte("d"), NewParent: parent, NewName: []byte("e"), Judged: proto.Uint64(judged),
		}))
		cmd.Caller.Uid = 1000
		return tr.apply(cmd)
	}
	move(to, moved-1).is(storepb.Code_NOT_JUDGED)
	move(to, moved).ok()
	require.NotZero(t, tr.attr(moved).GetMode()&syscall.S_IFDIR)
	moved = tr.mkdir(from, "d")
	move(from, moved-1).ok()
}

// TestExchangedDirectoriesAreJudgedBoth: each of them comes to the place of the other.
func TestExchangedDirectoriesAreJudgedBoth(t *testing.T) {
	tr := newDriver(t)
	from, to := tr.openDir("from"), tr.openDir("to")
	d, e := tr.mkdir(from, "d"), tr.mkdir(to, "e")
	swap := func(judged, newJudged uint64) step {
		cmd := tr.next(there, opOf(&storepb.Rename{
			Parent: from, Name: []byte("d"), NewParent: to, NewName: []byte("e"), Exchange: true,
			Judged: proto.Uint64(judged), NewJudged: proto.Uint64(newJudged),
		}))
		cmd.Caller.Uid = 1000
		return tr.apply(cmd)
	}
	swap(d-1, e).is(storepb.Code_NOT_JUDGED)
	swap(d, e-1).is(storepb.Code_NOT_JUDGED)
	swap(d, e).ok()
}

// TestWhatIsReplacedNeedNotBeJudgedToLeave: it goes nowhere.
func TestWhatIsReplacedNeedNotBeJudgedToLeave(t *testing.T) {
	tr := newDriver(t)
	from, to := tr.openDir("from"), tr.openDir("to")
	d, e := tr.mkdir(from, "d"), tr.mkdir(to, "e")
	cmd := tr.next(there, opOf(&storepb.Rename{
		Parent: from, Name: []byte("d"), NewParent: to, NewName: []byte("e"), Judged: &d, NewJudged: proto.Uint64(e - 1),
	}))
	cmd.Caller.Uid = 1000
	tr.apply(cmd).ok()
}
