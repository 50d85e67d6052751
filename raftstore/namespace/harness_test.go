package namespace

import (
	"bytes"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Sessions that every tree of a test has: two mounts on two hosts.
const (
	here  = 1
	there = 2
)

// driver drives a namespace in table tests: each call is one command, one second after the one before.
type driver struct {
	tb    testing.TB
	ns    *Namespace
	index uint64
	now   int64
	seqs  map[uint64]uint64
	hosts map[uint64]string // by session
	says  storepb.NameSays  // of each name that is made: most tests are about locks
}

func newDriver(tb testing.TB) *driver {
	tr := &driver{tb: tb, ns: New(), now: int64(time.Hour), seqs: map[uint64]uint64{}, hosts: map[uint64]string{}, says: storepb.NameSays_SAYS_LOCK}
	tr.open(here, "here", "boot").ok()
	tr.open(there, "there", "boot").ok()
	return tr
}

// open opens a session of a host.
func (tr *driver) open(session uint64, host, boot string) step {
	tr.hosts[session] = host
	return tr.apply(&storepb.Command{Session: session, Op: opOf(&storepb.OpenSession{Host: host, BootId: boot})})
}

// giveUp ends a session that was not renewed.
func (tr *driver) giveUp(session uint64) {
	tr.tb.Helper()
	s, found := tr.ns.sessions.byID.Get(ids.Session(session))
	require.True(tr.tb, found)
	tr.do(0, opOf(&storepb.EndSession{Id: session, IfActive: uint64(s.active)})).ok()
}

// step is a result in a test that says what it expects of it.
type step struct {
	*storepb.Result
	tb testing.TB
}

func (s step) ok() *storepb.Result {
	s.tb.Helper()
	return s.is(storepb.Code_OK)
}

func (s step) is(code storepb.Code) *storepb.Result {
	s.tb.Helper()
	require.Equal(s.tb, code, s.GetCode(), "result: %v", s.Result)
	return s.Result
}

func (tr *driver) wait(d time.Duration) { tr.now += int64(d) }

// apply gives the namespace a command as it is, but for its time.
func (tr *driver) apply(cmd *storepb.Command) step {
	tr.index++
	tr.wait(time.Second)
	cmd.Time = tr.now
	return step{tr.ns.Apply(ids.Index(tr.index), cmd), tr.tb}
}

// do applies an operation as the next command of a session.
func (tr *driver) do(session uint64, op *storepb.Op) step {
	return tr.apply(tr.next(session, op))
}

// next numbers a command without applying it.
func (tr *driver) next(session uint64, op *storepb.Op) *storepb.Command {
	tr.seqs[session]++
	if says := saysIn(op); says != nil && *says == storepb.NameSays_SAYS_NOTHING {
		*says = tr.says
	}
	return &storepb.Command{
		Session: session, Seq: tr.seqs[session], Op: op, Caller: &storepb.Caller{Host: tr.hosts[session], Uid: 7, Gid: 8},
	}
}

// dataNamed has the name say that it is data.
func dataNamed(op *storepb.Op) *storepb.Op {
	*saysIn(op) = storepb.NameSays_SAYS_DATA
	return op
}

// saysIn is where an operation tells what the name says that it makes; nil: it makes none.
func saysIn(op *storepb.Op) *storepb.NameSays {
	switch op := op.GetOp().(type) {
	case *storepb.Op_Create:
		return &op.Create.Says
	case *storepb.Op_Link:
		return &op.Link.Says
	case *storepb.Op_Rename:
		return &op.Rename.Says
	}
	return nil
}

func (tr *driver) create(parent uint64, name string, mode uint32) step {
	return tr.do(here, opOf(&storepb.Create{Parent: parent, Name: []byte(name), Mode: mode, Exclusive: true}))
}

func (tr *driver) file(parent uint64, name string) uint64 {
	tr.tb.Helper()
	return tr.create(parent, name, syscall.S_IFREG|0o644).ok().GetAttr().GetIno()
}

func (tr *driver) mkdir(parent uint64, name string) uint64 {
	tr.tb.Helper()
	return tr.create(parent, name, syscall.S_IFDIR|0o755).ok().GetAttr().GetIno()
}

func (tr *driver) unlink(session, parent uint64, name string) step {
	return tr.do(session, opOf(&storepb.Unlink{Parent: parent, Name: []byte(name)}))
}

func (tr *driver) rmdir(parent uint64, name string) step {
	return tr.do(here, opOf(&storepb.Unlink{Parent: parent, Name: []byte(name), Directory: true}))
}

func (tr *driver) link(ino, parent uint64, name string) step {
	return tr.do(here, opOf(&storepb.Link{Ino: ino, Parent: parent, Name: []byte(name)}))
}

func (tr *driver) rename(parent uint64, name string, newParent uint64, newName string) step {
	return tr.do(here, renameOp(parent, name, newParent, newName))
}

func (tr *driver) renameNoReplace(parent uint64, name string, newParent uint64, newName string) step {
	op := renameOp(parent, name, newParent, newName)
	op.GetRename().NoReplace = true
	return tr.do(here, op)
}

func (tr *driver) exchange(parent uint64, name string, newParent uint64, newName string) step {
	op := renameOp(parent, name, newParent, newName)
	op.GetRename().Exchange = true
	return tr.do(here, op)
}

// write replaces the content whatever version it has.
func (tr *driver) write(session, ino uint64, content string) step {
	version := tr.ns.Query(getAttr(ino)).GetAttr().GetVersion()
	return tr.do(session, opOf(&storepb.SetContent{Ino: ino, IfVersion: version, Content: []byte(content)}))
}

func (tr *driver) attr(ino uint64) *storepb.Attr {
	tr.tb.Helper()
	return step{tr.ns.Query(getAttr(ino)), tr.tb}.ok().GetAttr()
}

func (tr *driver) content(ino uint64) string {
	tr.tb.Helper()
	return string(step{tr.ns.Query(readOf(ino)), tr.tb}.ok().GetContent())
}

// at answers the inode number that a name has; 0 if there is no such name.
func (tr *driver) at(parent uint64, name string) uint64 {
	return tr.ns.Query(lookupOf(parent, name)).GetAttr().GetIno()
}

// names lists the root directory.
func (tr *driver) names() []string {
	var names []string
	for _, e := range listing(tr.ns, RootIno, 0)[2:] {
		names = append(names, string(e.GetName()))
	}
	return names
}

// chain makes directories below one another and answers the inode number of each.
func (tr *driver) chain(parent uint64, length int) []uint64 {
	tr.tb.Helper()
	inos := make([]uint64, length)
	for i := range inos {
		parent = tr.mkdir(parent, "d")
		inos[i] = parent
	}
	return inos
}

// listing reads a directory in pages of the given size; 0 is the largest.
func listing(ns *Namespace, dir uint64, page uint32) []*storepb.DirEntry {
	var all []*storepb.DirEntry
	after := uint64(0)
	for {
		got := ns.Query(readDirOf(dir, after, page)).GetEntries()
		if len(got) == 0 {
			return all
		}
		all = append(all, got...)
		after = got[len(got)-1].GetCookie()
	}
}

func snapshotBytes(tb require.TestingT, s *Snapshot) []byte {
	var out bytes.Buffer
	require.NoError(tb, s.Write(&out))
	return out.Bytes()
}

func restored(tb require.TestingT, data []byte) *Namespace {
	ns, err := Restore(bytes.NewReader(data))
	require.NoError(tb, err)
	return ns
}

func nameOf(i int) string { return "lock-" + strconv.Itoa(i) }
