package namespace

import (
	"bytes"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/glob"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestSnapshotRoundTrip restores a namespace at random points and lets both go on: they stay equal, and
// what a snapshot holds is what was there when it was taken.
func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		g.locks, g.deep = true, g.often(40)
		type past struct {
			snapshot *Snapshot
			bytes    []byte
		}
		var taken []past
		var copies []*Namespace
		steps := 1 + g.below(pick(g, 20, 50, 150))
		for index := uint64(1); index <= uint64(steps); index++ {
			cmd := g.next()
			result := ns.Apply(ids.Index(index), cmd)
			for _, other := range copies {
				requireSame(t, result, other.Apply(ids.Index(index), cmd))
			}
			if !g.often(4) {
				continue
			}
			snapshot := ns.Snapshot()
			require.Equal(t, ids.Index(index), snapshot.Index())
			data := snapshotBytes(t, snapshot)
			taken = append(taken, past{snapshot, data})
			other := restored(t, data)
			requireConsistent(t, other)
			require.Equal(t, snapshot.Hash(), other.Snapshot().Hash())
			require.Equal(t, data, snapshotBytes(t, other.Snapshot()))
			require.Equal(t, ns.Query(statFs(7)).GetFsStats().String(), other.Query(statFs(7)).GetFsStats().String())
			copies = append(copies, other)
		}
		for _, other := range copies {
			requireConsistent(t, other)
			require.Equal(t, ns.Snapshot().Hash(), other.Snapshot().Hash())
		}
		for _, then := range taken {
			require.Equal(t, then.bytes, snapshotBytes(t, then.snapshot), "a snapshot does not change")
		}
	})
}

// TestReplicasAgree feeds one encoded log to two namespaces, one of them restored in the middle.
func TestReplicasAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := New(), New()
		g := newGenerator(t, a)
		g.locks = g.often(70)
		steps := 1 + g.below(60)
		restart := uint64(g.below(steps)) + 1
		for index := uint64(1); index <= uint64(steps); index++ {
			logged, err := codec.EncodeCommand(g.next())
			require.NoError(t, err)
			for _, ns := range []*Namespace{a, b} {
				cmd, err := codec.DecodeCommand(logged)
				require.NoError(t, err)
				ns.Apply(ids.Index(index), cmd)
			}
			if index == restart {
				b = restored(t, snapshotBytes(t, b.Snapshot()))
			}
			require.Equal(t, a.Snapshot().Hash(), b.Snapshot().Hash(), "at index %d", index)
		}
	})
}

// TestSnapshotIsWrittenWhileApplyGoesOn is for the race detector: trees share nodes.
func TestSnapshotIsWrittenWhileApplyGoesOn(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "locks")
	for i := range 300 {
		tr.write(here, tr.file(dir, nameOf(i)), "held").ok()
	}
	var writers sync.WaitGroup
	for round := range 3 {
		snapshot, want := tr.ns.Snapshot(), tr.ns.Snapshot().Hash()
		writers.Go(func() {
			var out bytes.Buffer
			require.NoError(t, snapshot.Write(&out))
			require.Equal(t, want, snapshot.Hash())
		})
		for i := round; i < 300; i += 10 {
			tr.unlink(here, dir, nameOf(i)).ok()
			ino := tr.file(dir, nameOf(i))
			tr.link(ino, RootIno, nameOf(round*1000+i)).ok()
			tr.do(here, opOf(&storepb.SetXattr{Ino: ino, Name: []byte("user.a"), Value: []byte("v")})).ok()
			tr.ns.Query(readDirOf(dir, 0, 0))
		}
	}
	writers.Wait()
	requireConsistent(t, tr.ns)
}

// TestSnapshotHashTellsStatesApart changes one thing at a time.
func TestSnapshotHashTellsStatesApart(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "f")
	seen := map[string]string{tr.ns.Snapshot().Hash(): "file"}
	for name, op := range map[string]*storepb.Op{
		"content": opOf(&storepb.SetContent{Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("x")}),
		"xattr":   opOf(&storepb.SetXattr{Ino: ino, Name: []byte("user.a")}),
		"link":    opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("g")}),
		"refusal": opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("f")}),
		"limit":   opOf(&storepb.SetLimits{MaxInodes: 5}),
		"member":  opOf(&storepb.SetMember{Member: &storepb.Member{Id: "i", Name: "n"}}),
		"session": opOf(&storepb.CloseSession{}),
		"facts": opOf(&storepb.SetContent{
			Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("x"), Facts: towerFacts("x"),
		}),
		"process": opOf(&storepb.SetContent{
			Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("x"), Facts: pidFacts(storepb.Format_PID, processOf(1)),
		}),
		"evidence": opOf(&storepb.SetContent{
			Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("x"), Facts: &storepb.Facts{Evidence: []string{"e"}},
		}),
		"invalid": opOf(&storepb.SetContent{
			Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("x"), Facts: &storepb.Facts{Format: storepb.Format_TOWER, Holder: "x", Invalid: "i"},
		}),
		"machine": opOf(&storepb.SetContent{
			Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("x"), Facts: &storepb.Facts{Format: storepb.Format_TOWER, Holder: "x", Machine: "m"},
		}),
		"namespaces": opOf(&storepb.SetContent{
			Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("x"), Facts: pidFacts(storepb.Format_PID, inContainer()),
		}),
		"exclusive": createOp(RootIno, "new", true),
		"ordinary":  createOp(RootIno, "new", false),
		"lock":      opOf(&storepb.TakeLock{Ino: ino, Type: storepb.LockType_SHARED, Session: here}),
		"rule":      opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "*"}}),
		"new rule":  opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "*", StaleAfter: 1}}),
		"tick":      opOf(&storepb.Tick{}),
		"event":     opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("f"), Observations: []*storepb.Observation{{Parent: 1, Name: []byte("f"), Token: 1}}}),
	} {
		other := restored(t, snapshotBytes(t, tr.ns.Snapshot()))
		other.Apply(ids.Index(tr.index+1), &storepb.Command{Session: here, Seq: 100, Op: op})
		hash := other.Snapshot().Hash()
		require.NotContains(t, seen, hash, "%s", name)
		seen[hash] = name
	}
	for name, op := range map[string]*storepb.Op{
		"cluster":   opOf(&storepb.SetCluster{Id: "id"}),
		"authority": opOf(&storepb.AddAuthority{Certificate: []byte("c"), SealedKey: []byte("k")}),
		"sealed":    opOf(&storepb.AddAuthority{Certificate: []byte("c"), SealedKey: []byte("other")}),
		"token":     opOf(tokenFor("t", storepb.Role_CLIENT, math.MaxInt64)),
		"server":    opOf(tokenFor("t", storepb.Role_SERVER, math.MaxInt64)),
	} {
		other := restored(t, snapshotBytes(t, tr.ns.Snapshot()))
		other.Apply(ids.Index(tr.index+1), &storepb.Command{Op: op})
		hash := other.Snapshot().Hash()
		require.NotContains(t, seen, hash, "%s", name)
		seen[hash] = name
	}
}

// TestLongestStringsSurviveSnapshot: what is accepted can be read again, and more is not accepted.
func TestLongestStringsSurviveSnapshot(t *testing.T) {
	tr := newDriver(t)
	long := func(n int) string { return string(bytes.Repeat([]byte("x"), n)) }
	for _, n := range []int{MaxName, MaxName + 1, 2 << 20} {
		tr.do(9, opOf(&storepb.OpenSession{Host: long(n), BootId: long(n)}))
		tr.do(here, opOf(&storepb.SetMember{Member: &storepb.Member{Id: long(n), Name: long(n), Address: long(n)}}))
		tr.do(here, opOf(&storepb.SetMember{Member: &storepb.Member{Id: "other" + long(n), Name: long(n)}}))
	}
	ino := tr.create(RootIno, long(MaxName), 0o100644).ok().GetAttr().GetIno()
	for _, n := range []int{maxFacts - 100, maxFacts, 2 << 20} {
		facts := &storepb.Facts{Format: storepb.Format_SWARM, Holder: long(n), Guard: storepb.Guard_ANYONE}
		tr.fillAs(tr.fillOp(here, RootIno, long(MaxName), nil), facts)
		facts = &storepb.Facts{Format: storepb.Format_SWARM, Holder: "x" + long(maxFacts-100), Tag: long(min(n*100, MaxContent+n-maxFacts)), Guard: storepb.Guard_ANYONE}
		tr.fillAs(tr.fillOp(here, RootIno, long(MaxName), nil), facts)
		tr.rule(&storepb.Rule{Pattern: long(n), Format: long(n)})
		tr.rule(&storepb.Rule{Pattern: long(min(n, glob.MaxLength)), Guard: long(n)})
		tr.do(here, opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "a", Format: long(n)}}))
		tr.do(here, opOf(&storepb.ForgetHost{Name: long(n)}))
		tr.do(0, opOf(&storepb.NoteRefusal{Name: long(n), Address: long(n), Reason: long(n)})).ok()
		tr.do(0, opOf(&storepb.SetCluster{Id: long(n)}))
		tr.do(0, opOf(&storepb.AddAuthority{Certificate: []byte(long(n)), SealedKey: []byte(long(n)), CrossCertificate: []byte(long(n))}))
		token := tokenFor(long(n), storepb.Role_CLIENT, math.MaxInt64)
		token.Token.Host = long(n)
		tr.do(0, opOf(token))
		tr.do(0, opOf(hostFor(long(n), storepb.Role_SERVER, long(n), "")))
		cmd := tr.next(here, createOp(RootIno, "f"+nameOf(n), true))
		cmd.Caller.Host = long(n)
		tr.apply(cmd).is(storepb.Code_INVALID)
	}
	tr.rule(&storepb.Rule{Pattern: long(glob.MaxLength)}).ok()
	require.NotNil(t, tr.ns.tree.nameOf(ids.Inode(ino)).known)
	tr.write(here, ino, long(MaxContent)).ok()
	for i := range MaxXattrs / 6 {
		tr.do(here, opOf(&storepb.SetXattr{Ino: ino, Name: []byte("user." + string([]byte{byte(1 + i/200), byte(1 + i%200)}))}))
	}
	require.Len(t, tr.ns.Query(xattrsOf(ino)).GetXattrs(), MaxXattrs/7)
	require.Len(t, tr.ns.Members(), 2)
	require.Equal(t, 3, tr.ns.sessions.byID.Len())
	restored(t, snapshotBytes(t, tr.ns.Snapshot()))
}

// fillAs writes content as long as can be, with facts.
func (tr *driver) fillAs(op *storepb.SetContent, facts *storepb.Facts) {
	op.Content, op.Facts = bytes.Repeat([]byte("x"), MaxContent), facts
	tr.do(here, opOf(op))
}
