package namespace

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/test/costs"
)

// costDriver gives commands to a namespace.
type costDriver struct {
	t     testing.TB
	ns    *Namespace
	index uint64

	pinned   uint64 // a session without a pin, in the row for pins
	squashed bool   // root of the caller's host is squashed
}

func newCostDriver(t testing.TB) *costDriver {
	d := &costDriver{t: t, ns: New()}
	d.do(opOf(&storepb.SetLimits{MaxBytes: 1 << 40, MaxSessions: 1 << 20, MaxSessionsPerHost: 1 << 20, MaxInodes: 1 << 20}))
	return d
}

func (d *costDriver) command(session uint64, op *storepb.Op) *storepb.Attr {
	d.index++
	by := &storepb.Caller{Host: "host-1", Squashed: d.squashed}
	if d.squashed {
		by.Uid, by.Gid = Nobody, Nobody
	}
	result := d.ns.Apply(ids.Index(d.index), &storepb.Command{
		Session: session, Seq: d.index, Acked: d.index - 1, Time: int64(d.index), Op: op, Caller: by,
	})
	if result.GetCode() != storepb.Code_OK {
		d.t.Fatalf("%v: %v", op, result)
	}
	return result.GetAttr()
}

func (d *costDriver) do(op *storepb.Op) *storepb.Attr { return d.command(0, op) }

// lock creates a lock.
func (d *costDriver) lock(dir uint64, name string) *storepb.Attr {
	return d.do(opOf(&storepb.Create{Parent: dir, Name: []byte(name), Mode: someFile, Exclusive: true, Says: storepb.NameSays_SAYS_LOCK}))
}

// cycle creates, writes, renames and removes a lock.
func (d *costDriver) cycle(dir uint64) {
	made := d.lock(dir, "cycle.lock")
	d.do(opOf(&storepb.SetContent{Ino: made.GetIno(), IfVersion: made.GetVersion(), Content: []byte("holder"), Facts: someFacts(0)}))
	d.do(opOf(&storepb.Rename{Parent: dir, Name: []byte("cycle.lock"), NewParent: dir, NewName: []byte("renamed.lock")}))
	d.do(opOf(&storepb.Unlink{Parent: dir, Name: []byte("renamed.lock")}))
}

// stateCosts are commands, each beside so much of one thing that a user can pile up.
var stateCosts = []struct {
	name   string
	pileUp func(d *costDriver, n int)
	do     func(d *costDriver)
}{
	{"names in the directory",
		func(d *costDriver, n int) {
			for i := range n {
				d.lock(RootIno, fmt.Sprint("held-", i))
			}
		},
		func(d *costDriver) { d.cycle(RootIno) }},
	{"locks with facts, of which one is renewed",
		func(d *costDriver, n int) {
			for i := range n {
				made := d.lock(RootIno, fmt.Sprint("held-", i))
				d.do(opOf(&storepb.SetContent{Ino: made.GetIno(), IfVersion: made.GetVersion(), Facts: someFacts(i)}))
			}
		},
		func(d *costDriver) {
			attr := d.ns.Query(getAttr(2)).GetAttr()
			d.do(opOf(&storepb.SetContent{Ino: 2, IfVersion: attr.GetVersion(), Facts: someFacts(0)}))
		}},
	{"directories",
		func(d *costDriver, n int) {
			for i := range n {
				d.do(opOf(&storepb.Create{Parent: RootIno, Name: fmt.Append(nil, i), Mode: someDir}))
			}
		},
		func(d *costDriver) {
			d.do(opOf(&storepb.Rename{Parent: RootIno, Name: []byte("7"), NewParent: RootIno, NewName: []byte("new")}))
			d.do(opOf(&storepb.Rename{Parent: RootIno, Name: []byte("new"), NewParent: RootIno, NewName: []byte("7")}))
			d.cycle(8)
		}},
	{"extended attributes",
		func(d *costDriver, n int) {
			for i := range n {
				made := d.lock(RootIno, fmt.Sprint("held-", i))
				d.do(opOf(&storepb.SetXattr{Ino: made.GetIno(), Name: []byte("user.x"), Value: []byte("value")}))
			}
		},
		func(d *costDriver) {
			d.do(opOf(&storepb.SetXattr{Ino: 2, Name: []byte("user.x"), Value: fmt.Append(nil, d.index)}))
		}},
	{"sessions",
		func(d *costDriver, n int) {
			for i := range n {
				d.command(uint64(i+1), opOf(&storepb.OpenSession{Host: fmt.Sprint("host-", i/100)}))
			}
		},
		func(d *costDriver) {
			d.command(1<<40, opOf(&storepb.OpenSession{Host: "another"}))
			d.command(1<<40, opOf(&storepb.CloseSession{}))
			d.cycle(RootIno)
		}},
	{"sessions of one host, and a lock that is judged by them",
		func(d *costDriver, n int) {
			for i := range n {
				d.command(uint64(i+1), opOf(&storepb.OpenSession{Host: "host-1", BootId: someBoot, PidNamespace: uint64(10 + i)}))
			}
			d.fill(d.lock(RootIno, "held"), someFacts(1))
		},
		func(d *costDriver) {
			d.ns.Query(&storepb.Query{Query: &storepb.Query_GetLock{GetLock: &storepb.GetLock{Parent: RootIno, Name: []byte("held")}}})
			d.do(opOf(&storepb.Rename{Parent: RootIno, Name: []byte("held"), NewParent: RootIno, NewName: []byte("held-")}))
			d.do(opOf(&storepb.Rename{Parent: RootIno, Name: []byte("held-"), NewParent: RootIno, NewName: []byte("held")}))
		}},
	{"events",
		func(d *costDriver, n int) {
			for d.ns.LastEvent() < uint64(n) {
				d.cycle(RootIno)
			}
		},
		func(d *costDriver) { d.cycle(RootIno) }},
	{"links of a file",
		func(d *costDriver, n int) { d.links(d.data(RootIno, "data"), n) },
		func(d *costDriver) {
			d.useLinks(2)
			d.do(opOf(&storepb.SetAttr{Ino: 2, Uid: new(uint32(d.index % 2)), Mtime: new(int64(d.index))}))
		}},
	{"links of a file, where rules and quotas are",
		func(d *costDriver, n int) {
			d.rule(&storepb.Rule{Pattern: "elsewhere/*", OnStale: "keep"})
			d.do(opOf(&storepb.Create{Parent: RootIno, Name: []byte("dir"), Mode: someDir}))
			d.do(opOf(&storepb.SetQuota{Path: []byte("dir"), Quota: &storepb.Quota{MaxBytes: 1 << 40}}))
			d.links(d.data(2, "data"), n)
		},
		func(d *costDriver) {
			d.useLinks(3)
			d.do(opOf(&storepb.SetAttr{Ino: 3, Mtime: new(int64(d.index))}))
		}},
	{"links of a file where a squashed root cannot reach",
		func(d *costDriver, n int) {
			d.do(opOf(&storepb.Create{Parent: RootIno, Name: []byte("closed"), Mode: syscall.S_IFDIR | 0o700}))
			d.do(opOf(&storepb.Create{Parent: RootIno, Name: []byte("open"), Mode: someDir}))
			made := d.data(2, "data")
			d.do(opOf(&storepb.SetAttr{Ino: made.GetIno(), Mode: new(uint32(0o666))}))
			d.linksIn(2, made, n)
			d.linksIn(3, made, 1)
			d.squashed = true
		},
		func(d *costDriver) {
			d.do(opOf(&storepb.SetAttr{Ino: 4, AtimeNow: true, MtimeNow: true}))
		}},
	{"links of a file with a flock lock",
		func(d *costDriver, n int) {
			d.command(1, opOf(&storepb.OpenSession{Host: "host-1"}))
			d.links(d.data(RootIno, "data"), n)
		},
		func(d *costDriver) { d.flock(2) }},
	{"names below a directory that is renamed",
		func(d *costDriver, n int) {
			d.tree(n)
		},
		func(d *costDriver) { d.moveTree() }},
	{"directories below a directory that is renamed",
		func(d *costDriver, n int) {
			d.tree(0)
			for i := range n {
				d.do(opOf(&storepb.Create{Parent: 3, Name: fmt.Append(nil, i), Mode: someDir}))
			}
		},
		func(d *costDriver) { d.moveTree() }},
	{"names below a directory that is renamed, with a rule for each directory",
		func(d *costDriver, n int) {
			d.rule(&storepb.Rule{Pattern: "*.pid", StaleAfter: int64(time.Hour)})
			d.rule(&storepb.Rule{Pattern: "elsewhere/**", OnStale: "keep"})
			d.tree(n)
		},
		func(d *costDriver) { d.moveTree() }},
	{"names below a directory that is renamed out of a quota",
		func(d *costDriver, n int) {
			d.tree(n)
			d.do(opOf(&storepb.SetQuota{Path: []byte("to"), Quota: &storepb.Quota{MaxBytes: 1 << 40}}))
		},
		func(d *costDriver) { d.moveTree() }},
	{"removed files that sessions have open",
		func(d *costDriver, n int) {
			d.command(1, opOf(&storepb.OpenSession{Host: "host-1"}))
			for i := range n {
				made, name := d.data(RootIno, fmt.Sprint(i)), fmt.Append(nil, i)
				d.command(1, opOf(&storepb.Unlink{Parent: RootIno, Name: name, Pin: made.GetIno()}))
			}
		},
		func(d *costDriver) {
			d.command(2, opOf(&storepb.OpenSession{Host: "host-2"}))
			made := d.data(RootIno, "removed")
			d.command(2, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("removed"), Pin: made.GetIno()}))
			d.command(2, opOf(&storepb.CloseSession{}))
		}},
	{"sessions that have a removed file open",
		func(d *costDriver, n int) {
			made := d.data(RootIno, "removed")
			for i := range n + 1 {
				d.command(uint64(i+1), opOf(&storepb.OpenSession{Host: fmt.Sprint("host-", i/100)}))
			}
			d.command(1, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("removed"), Pin: made.GetIno()}))
			for i := range n {
				d.command(uint64(i+1), opOf(&storepb.Pin{Ino: made.GetIno()}))
			}
			d.pinned = uint64(n + 1)
		},
		func(d *costDriver) {
			d.command(d.pinned, opOf(&storepb.Pin{Ino: 2}))
			d.command(d.pinned, opOf(&storepb.Unpin{Ino: 2}))
			d.ns.Hash()
		}},
	{"locks of processes of a host that opens a session",
		func(d *costDriver, n int) {
			d.command(1, opOf(&storepb.OpenSession{Host: "host-1", BootId: someBoot}))
			for i := range n {
				d.fill(d.lock(RootIno, fmt.Sprint("held-", i)), someFacts(3*i+1))
			}
		},
		func(d *costDriver) {
			d.command(2, opOf(&storepb.OpenSession{Host: "host-1", BootId: someBoot}))
			d.command(2, opOf(&storepb.CloseSession{}))
		}},
	{"locks of processes, beside a rule with a host timeout and a silent host",
		func(d *costDriver, n int) {
			d.command(1, opOf(&storepb.OpenSession{Host: "host-1", BootId: someBoot}))
			d.command(2, opOf(&storepb.OpenSession{Host: "host-2", BootId: "boot-2"}))
			d.rule(&storepb.Rule{Pattern: "impatient-*", HostTimeout: int64(time.Hour)})
			d.fill(d.lock(RootIno, "impatient-"), pidFacts(storepb.Format_PID, processOf(1)))
			for i := range n {
				d.fill(d.lock(RootIno, fmt.Sprint("held-", i)), someFacts(3*i+1))
			}
			d.command(2, opOf(&storepb.CloseSession{InUse: true}))
		},
		func(d *costDriver) {
			d.ns.Due(int64(d.index))
			d.do(opOf(&storepb.Tick{}))
		}},
	{"data beside locks that are listed",
		func(d *costDriver, n int) {
			for i := range n {
				d.data(RootIno, fmt.Sprint("data-", i))
			}
			d.lock(RootIno, "x.lock")
		},
		func(d *costDriver) { d.list(1) }},
	{"directories with data beside locks that are listed",
		func(d *costDriver, n int) {
			for i := range n {
				made := d.do(opOf(&storepb.Create{Parent: RootIno, Name: fmt.Append(nil, i), Mode: someDir, Says: storepb.NameSays_SAYS_LOCK}))
				d.do(opOf(&storepb.Create{Parent: made.GetIno(), Name: []byte("data"), Mode: someFile}))
			}
			d.lock(RootIno, "x.lock")
		},
		func(d *costDriver) { d.list(1) }},
	{"files that had a flock lock, beside locks that are listed",
		func(d *costDriver, n int) {
			d.command(1, opOf(&storepb.OpenSession{Host: "host-1"}))
			for i := range n {
				d.flock(d.data(RootIno, fmt.Sprint("data-", i)).GetIno())
			}
			d.lock(RootIno, "x.lock")
		},
		func(d *costDriver) { d.list(1) }},
}

// data creates a file that is no lock.
func (d *costDriver) data(dir uint64, name string) *storepb.Attr {
	return d.do(opOf(&storepb.Create{Parent: dir, Name: []byte(name), Mode: someFile, Exclusive: true, Content: []byte("some data")}))
}

func (d *costDriver) fill(made *storepb.Attr, facts *storepb.Facts) {
	d.do(opOf(&storepb.SetContent{Ino: made.GetIno(), IfVersion: made.GetVersion(), Content: []byte("holder"), Facts: facts}))
}

func (d *costDriver) rule(rule *storepb.Rule) { d.do(opOf(&storepb.SetRule{Rule: rule})) }

// links makes n names of a file, as far as there may be so many.
func (d *costDriver) links(of *storepb.Attr, n int) { d.linksIn(RootIno, of, n) }

func (d *costDriver) linksIn(dir uint64, of *storepb.Attr, n int) {
	for i := range min(n, MaxLinks-2) {
		d.do(opOf(&storepb.Link{Ino: of.GetIno(), Parent: dir, Name: fmt.Append(nil, "link-", i)}))
	}
}

// useLinks makes one more name of a file, renames it, writes to the file and removes the name.
func (d *costDriver) useLinks(ino uint64) {
	d.do(opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("another")}))
	d.do(opOf(&storepb.Rename{Parent: RootIno, Name: []byte("another"), NewParent: RootIno, NewName: []byte("renamed")}))
	attr := d.ns.Query(getAttr(ino)).GetAttr()
	d.do(opOf(&storepb.SetContent{Ino: ino, IfVersion: attr.GetVersion(), Content: fmt.Append(nil, d.index), Facts: someFacts(0)}))
	d.ns.Settled(ids.Inode(ino), 1<<60)
	d.do(opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("renamed")}))
}

// flock takes and releases a flock lock for session 1.
func (d *costDriver) flock(ino uint64) {
	for _, lock := range []storepb.LockType{storepb.LockType_EXCLUSIVE, storepb.LockType_UNLOCK} {
		d.command(1, opOf(&storepb.TakeLock{Ino: ino, Kind: storepb.LockKind_FLOCK, Type: lock, Owner: 1, Session: 1}))
	}
}

// tree makes directories from and to, and from/moved with n names below.
func (d *costDriver) tree(n int) {
	for i, name := range []string{"from", "moved", "to"} {
		parent := []uint64{RootIno, 2, RootIno}[i]
		d.do(opOf(&storepb.Create{Parent: parent, Name: []byte(name), Mode: someDir}))
	}
	dir := uint64(0)
	for i := range n {
		if i%100 == 0 {
			dir = d.do(opOf(&storepb.Create{Parent: 3, Name: fmt.Append(nil, i), Mode: someDir})).GetIno()
		}
		d.data(dir, fmt.Sprint(i))
	}
}

// moveTree renames the directory of tree, there and back.
func (d *costDriver) moveTree() {
	d.do(opOf(&storepb.Rename{Parent: 2, Name: []byte("moved"), NewParent: 4, NewName: []byte("elsewhere")}))
	d.do(opOf(&storepb.Rename{Parent: 4, Name: []byte("elsewhere"), NewParent: 2, NewName: []byte("moved")}))
}

// list requires so many locks in the list of them.
func (d *costDriver) list(want int) {
	if got := len(d.ns.Query(listLocks(0, "", 10)).GetLocks()); got != want {
		d.t.Fatalf("%d locks, not %d", got, want)
	}
}

// TestCostsDoNotGrow measures each command beside 1,000 things and beside many more.
func TestCostsDoNotGrow(t *testing.T) {
	for _, row := range stateCosts {
		t.Run(row.name, func(t *testing.T) {
			costs.RequireBounded(t, 20, func(pile int) func() {
				d := newCostDriver(t)
				row.pileUp(d, pile)
				return func() { row.do(d) }
			})
		})
	}
}
