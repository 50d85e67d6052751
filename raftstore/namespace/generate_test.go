package namespace

import (
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// generator draws commands that mean something in a namespace: few names, so that they meet; inode
// numbers that exist, mostly; sessions that number, retry, acknowledge and cancel.
type generator struct {
	t     *rapid.T
	ns    *Namespace
	now   int64
	sent  map[uint64][]*storepb.Command // by session: those with a number
	seq   map[uint64]uint64
	locks bool // also what the state refuses or removes because of locks
	deep  bool // few names are in the root directory
}

func newGenerator(t *rapid.T, ns *Namespace) *generator {
	return &generator{t: t, ns: ns, now: int64(time.Hour), sent: map[uint64][]*storepb.Command{}, seq: map[uint64]uint64{}}
}

var coins = rapid.SliceOfN(rapid.Bool(), 10, 10)

// below draws a number from 0 to n-1, each equally often; rapid's own numbers are small ones, mostly.
func (g *generator) below(n int) int {
	number := 0
	for _, heads := range coins.Draw(g.t, "coins") {
		number *= 2
		if heads {
			number++
		}
	}
	return number % n
}

// often answers true in percent of the cases.
func (g *generator) often(percent int) bool { return g.below(100) >= 100-percent }

func pick[T any](g *generator, from ...T) T { return from[g.below(len(from))] }

// next draws a command.
func (g *generator) next() *storepb.Command {
	g.now += pick(g, 0, 1, int64(time.Second), int64(time.Second), int64(5*time.Second), int64(40*time.Second), -int64(time.Minute))
	if g.locks && g.often(50) {
		g.now = max(g.now, g.ns.time) // after a step back, or time stands still for long
	}
	if g.often(1) {
		g.now += int64(8 * 24 * time.Hour)
	}
	session := pick[uint64](g, 1, 1, 1, 2, 2, 3, 0)
	if g.locks {
		session = pick[uint64](g, 1, 1, 2, 2, 3, 3, 4, 5, 6, 0)
	}
	if history := g.sent[session]; len(history) > 0 && g.often(10) {
		again := proto.Clone(pick(g, history[max(0, len(history)-8):]...)).(*storepb.Command)
		again.Time = g.now
		return again
	}
	if g.ns.sessions.byID.Len() == 0 || g.often(3) {
		return g.unnumbered(session, opOf(&storepb.OpenSession{
			Host: g.hostOf(session), BootId: pick(g, "b", "b", "b", "c"), Started: pick[int64](g, 1, 1, 2, 2, 3),
		}))
	}
	if g.often(10) {
		return g.unnumbered(session, opOf(&storepb.Cancel{Seq: g.cancelled(session)}))
	}
	if g.often(2) {
		return g.unnumbered(session, opOf(&storepb.CloseSession{}))
	}
	g.seq[session]++
	cmd := g.unnumbered(session, g.op())
	cmd.Seq = g.seq[session]
	if g.often(20) {
		cmd.Acked = cmd.Seq - min(cmd.Seq, pick[uint64](g, 0, 1, 3, 6, 12))
	}
	g.sent[session] = append(g.sent[session], cmd)
	return cmd
}

func (g *generator) unnumbered(session uint64, op *storepb.Op) *storepb.Command {
	cmd := &storepb.Command{
		Session: session, Time: g.now, Op: op,
		Caller: &storepb.Caller{Host: g.hostOf(session), Uid: pick[uint32](g, 0, 7), Gid: pick[uint32](g, 0, 8), BudgetUid: pick[uint32](g, 0, 0, 0, 5)},
	}
	if g.locks {
		g.mean(cmd)
	}
	return cmd
}

// hostOf is the host of a session: some have the same.
func (g *generator) hostOf(session uint64) string {
	if session%3 == 0 {
		return "h2"
	}
	return "h"
}

func (g *generator) op() *storepb.Op {
	if g.locks && g.often(30) {
		return g.lockOp()
	}
	switch g.below(31) {
	case 0, 1, 2, 3, 4, 5, 6:
		return opOf(g.create())
	case 7, 8, 9:
		return opOf(&storepb.Link{Ino: g.ino(), Parent: g.dir(), Name: g.name()})
	case 10, 11, 12:
		parent, name := g.entry()
		return opOf(&storepb.Unlink{Parent: parent, Name: name, Directory: g.often(40), Pin: g.ino()})
	case 13, 14, 15, 16, 17, 18:
		return opOf(g.rename())
	case 19, 20:
		return opOf(g.setAttr())
	case 21, 22, 23:
		return opOf(g.setContent())
	case 24, 25:
		return opOf(&storepb.SetXattr{
			Ino: g.ino(), Name: g.xattrName(), Value: g.xattrValue(), MustCreate: g.often(20), MustReplace: g.often(20),
		})
	case 26:
		return opOf(&storepb.RemoveXattr{Ino: g.ino(), Name: g.xattrName()})
	case 27:
		return opOf(&storepb.Pin{Ino: g.orphan()})
	case 28:
		return opOf(&storepb.Unpin{Ino: g.orphan()})
	case 29:
		return opOf(g.endSession())
	default:
		return g.rare()
	}
}

func (g *generator) rename() *storepb.Rename {
	op := &storepb.Rename{NoReplace: g.often(40), Exchange: g.often(25)}
	op.Parent, op.Name = g.entry()
	op.NewParent, op.NewName = g.dir(), g.name()
	if op.Exchange && g.often(70) {
		op.NoReplace = false
		op.NewParent, op.NewName = g.entry()
	}
	return op
}

func (g *generator) rare() *storepb.Op {
	switch g.below(5) {
	case 0:
		return opOf(&storepb.SetLimits{
			MaxInodes: pick[uint64](g, 0, 6, 12, 20, 48, 128, DefaultMaxInodes), MaxSessions: pick[uint64](g, 0, 2, DefaultMaxSessions),
			MaxBytes:         pick[uint64](g, 0, 0, 6<<10, 12<<10, 40<<10, DefaultMaxBytes),
			MaxBytesPerUser:  pick[uint64](g, 0, 0, 0, 3<<10, 12<<10, DefaultMaxBytes),
			MaxInodesPerUser: pick[uint64](g, 0, 0, 0, 2, 5, DefaultMaxInodes), MaxSessionsPerHost: pick[uint64](g, 0, 0, 1, 2, 100),
		})
	case 1:
		return opOf(&storepb.SetMember{Member: &storepb.Member{
			Id: pick(g, "", "m1", "m2"), Name: pick(g, "", "n1", "n2"), Instance: pick[uint64](g, 0, 7, 9),
		}})
	case 2:
		return opOf(&storepb.RemoveMember{Id: pick(g, "", "m1", "m2")})
	case 3:
		return new(storepb.Op)
	default:
		return nil
	}
}

func (g *generator) endSession() *storepb.EndSession {
	op := &storepb.EndSession{Id: pick[uint64](g, 0, 1, 2, 3)}
	if s, found := g.ns.sessions.byID.Get(ids.Session(op.GetId())); found {
		op.IfActive = uint64(s.active - ids.Index(pick[uint64](g, 0, 0, 0, 1)))
	}
	return op
}

func (g *generator) create() *storepb.Create {
	kind := pick[uint32](g, syscall.S_IFREG, syscall.S_IFREG, syscall.S_IFREG, syscall.S_IFDIR, syscall.S_IFDIR,
		syscall.S_IFDIR, syscall.S_IFLNK, syscall.S_IFIFO)
	op := &storepb.Create{
		Parent: g.dir(), Name: g.name(), Mode: kind | pick[uint32](g, 0, 0o644, 0o2755, 0o4711, 0o1777),
		Exclusive: g.often(60),
	}
	if kind == syscall.S_IFLNK {
		op.Target, op.Facts = []byte("a/b"), g.evidence()
	}
	if kind == syscall.S_IFREG && op.Exclusive && g.often(25) {
		op.Content, op.Facts = []byte(pick(g, "", "one")), g.facts()
	}
	if g.often(2) {
		op.Content = pick(g, []byte("one"), tooBig)
	}
	if g.often(3) {
		op.Mode = pick[uint32](g, 0, syscall.S_IFCHR, syscall.S_IFBLK, syscall.S_IFSOCK, 1<<20|syscall.S_IFREG)
	}
	if g.often(3) {
		op.Target = pick(g, nil, []byte("x"), []byte(strings.Repeat("t", MaxTarget+1)))
	}
	return op
}

func (g *generator) setAttr() *storepb.SetAttr {
	op := &storepb.SetAttr{Ino: g.ino(), AtimeNow: g.often(20), MtimeNow: g.often(20)}
	if g.often(40) {
		op.Mode = proto.Uint32(pick[uint32](g, 0o600, 0o2777, 0, 0o10000))
	}
	if g.often(30) {
		op.Uid = proto.Uint32(9)
	}
	if g.often(30) {
		op.Gid = proto.Uint32(10)
	}
	if g.often(30) {
		op.Atime = proto.Int64(pick(g, 0, -5, g.now, 1<<60))
	}
	if g.often(30) {
		op.Mtime = proto.Int64(pick(g, 0, -5, g.now, 1<<60))
	}
	return op
}

// someKiB is so long that it counts.
var someKiB = strings.Repeat("m", 3<<10)

var tooBig = make([]byte, MaxContent+1)

func (g *generator) setContent() *storepb.SetContent {
	op := &storepb.SetContent{Ino: g.file(), Content: []byte(pick(g, "", "one", "twotwo", "three", someKiB[:600], someKiB)), Facts: g.facts()}
	if in, found := g.ns.tree.inode(ids.Inode(op.GetIno())); found {
		op.IfVersion = uint64(in.version)
		if g.often(20) {
			op.Facts = in.facts.message()
		}
	}
	if g.often(15) {
		op.IfVersion = pick(g, 0, op.IfVersion-1, 1<<40)
	}
	if g.often(2) {
		op.Content = tooBig
	}
	return op
}

func (g *generator) name() []byte {
	if g.often(3) {
		return []byte(pick(g, "", ".", "..", "a/b", "a\x00", strings.Repeat("n", MaxName), strings.Repeat("n", MaxName+1)))
	}
	return []byte(pick(g, "a", "b", "c", "d"))
}

func (g *generator) xattrName() []byte {
	if g.often(8) {
		return []byte(pick(g, "", "user.", "trusted.a", "user.\x00", "user."+strings.Repeat("n", MaxName)))
	}
	return []byte(pick(g, "user.a", "user.b", "user.c"))
}

func (g *generator) xattrValue() []byte {
	if g.often(15) {
		return make([]byte, pick(g, MaxXattrs/2, MaxXattrs-len("user.a"), MaxXattrs))
	}
	return []byte(pick(g, "", "v", "w"))
}

// ino is an inode number: of any inode, mostly.
func (g *generator) ino() uint64 {
	if g.often(4) {
		return pick[uint64](g, 0, 1<<63, ^uint64(0))
	}
	return uint64(pick(g, g.ns.tree.inodes.Keys()...))
}

// file is the inode number of a file, mostly.
func (g *generator) file() uint64 {
	var files []uint64
	g.ns.tree.inodes.Scan(func(ino ids.Inode, in *inode) bool {
		if in.isFile() {
			files = append(files, uint64(ino))
		}
		return true
	})
	if len(files) == 0 || g.often(15) {
		return g.ino()
	}
	return pick(g, files...)
}

// dir is the inode number of a directory, mostly.
func (g *generator) dir() uint64 {
	if !g.deep && g.often(40) || g.often(5) {
		return RootIno
	}
	var dirs []uint64
	g.ns.tree.inodes.Scan(func(ino ids.Inode, in *inode) bool {
		if in.isDir() && in.nlink > 0 {
			dirs = append(dirs, uint64(ino))
		}
		return true
	})
	if g.often(4) {
		return g.ino()
	}
	return pick(g, dirs...)
}

// entry is a name in a directory, mostly one that is there.
func (g *generator) entry() (parent uint64, name []byte) {
	if g.ns.tree.byName.Len() == 0 || g.often(30) {
		return g.dir(), g.name()
	}
	e := pick(g, g.ns.tree.byName.Items()...)
	return uint64(e.parent), []byte(e.name)
}

func (g *generator) orphan() uint64 {
	if g.ns.tree.orphans.byIno.Len() == 0 || g.often(5) {
		return g.ino()
	}
	return uint64(pick(g, g.ns.tree.orphans.byIno.Keys()...))
}

// cancelled is the number of a command that could be undone, of a recent one or of one still to come.
func (g *generator) cancelled(session uint64) uint64 {
	var undoable []uint64
	g.ns.sessions.replies.Scan(func(r *reply) bool {
		if r.session == ids.Session(session) && r.undo != nil {
			undoable = append(undoable, uint64(r.seq))
		}
		return true
	})
	if len(undoable) > 0 && g.often(70) {
		return pick(g, undoable...)
	}
	return g.seq[session] + 2 - min(g.seq[session]+2, pick[uint64](g, 0, 1, 1, 2, 2, 3, 4, 5))
}
