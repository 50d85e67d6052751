package namespace

import (
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockfs/raftstore/glob"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// facts are of any kind in a namespace whose locks matter, and else such that they hinder nobody.
func (g *generator) facts() *storepb.Facts {
	if g.often(25) {
		return nil
	}
	if g.locks && g.often(15) {
		return g.evidence()
	}
	f := &storepb.Facts{
		Format: storepb.Format_TOWER, Holder: "x", Host: "h", Pid: 1, IssuedAt: g.near(), Guard: storepb.Guard_ANYONE, OnStale: storepb.OnStale_KEEP,
	}
	if !g.locks {
		return f
	}
	f.Format = pick(g, storepb.Format_TOWER, storepb.Format_SEMAPHORE, storepb.Format_SWARM, storepb.Format_BEADS, storepb.Format_PID, storepb.Format_FORRST)
	f.Holder, f.Pid = pick(g, "x", "y"), pick[uint32](g, 1, 2)
	f.Host = pick(g, "h", "h", "h2")
	f.Guard = pick(g, storepb.Guard_HOST, storepb.Guard_HOST, storepb.Guard_ANYONE, storepb.Guard_ANYONE, storepb.Guard_OWNER, storepb.Guard_NO_GUARD)
	f.OnStale = pick(g, storepb.OnStale_KEEP, storepb.OnStale_REMOVE, storepb.OnStale_REMOVE, storepb.OnStale_NO_ON_STALE)
	if f.GetFormat() == storepb.Format_BEADS || f.GetFormat() == storepb.Format_PID {
		f.Process = g.process()
		f.Pid = f.Process.GetPid()
	} else if g.often(70) {
		f.ExpiresAt = g.near()
	}
	f.Machine = pick(g, "", "m", "m", "m2")
	f.Conditional = g.often(20)
	if g.often(10) {
		f.Invalid, f.Process, f.Pid, f.ExpiresAt, f.OnStale = "ttl: missing", nil, 0, 0, storepb.OnStale_KEEP
	}
	if g.often(4) {
		g.spoil(f)
	}
	return f
}

// evidence is all there is to say of a content of no format, or of a target.
func (g *generator) evidence() *storepb.Facts {
	if !g.locks || g.often(40) {
		return nil
	}
	return &storepb.Facts{Evidence: pick(g, []string{"names the host that wrote it"}, []string{"has the time", "names process 1"})}
}

// spoil makes facts that no mount would.
func (g *generator) spoil(f *storepb.Facts) {
	switch g.below(7) {
	case 0:
		f.Format = pick(g, storepb.Format_NO_FORMAT, storepb.Format_NONE)
	case 1:
		f.ExpiresAt = pick[int64](g, math.MinInt64, -1, 1, math.MaxInt64)
	case 2:
		f.IssuedAt = pick[int64](g, math.MinInt64, -1, math.MaxInt64)
	case 3:
		f.Process = new(storepb.Process)
	case 4:
		f.Process = nil
	case 5:
		f.Pid = pick[uint32](g, 0, math.MaxUint32)
	case 6:
		f.Holder, f.Tag = strings.Repeat("x", pick(g, 300, maxFacts)), strings.Repeat("t", pick(g, 1, MaxContent+1))
	}
}

// near is a time about now.
func (g *generator) near() int64 {
	return g.now + pick(g, -int64(time.Minute), 0, 1, int64(time.Second), int64(10*time.Second), int64(time.Minute))
}

func (g *generator) process() *storepb.Process {
	return &storepb.Process{
		PidNamespace: 1, Pid: pick[uint32](g, 1, 2), Start: pick[uint64](g, 1, 1, 2), BootId: pick(g, "b", "b", "b", "c"),
		SeenFrom: pick(g, nil, nil, []uint64{1}, []uint64{2, 1}),
	}
}

// lineage may be that of a process that cannot be seen.
func (g *generator) lineage() (line []*storepb.Process) {
	for range 1 + g.below(4) {
		line = append(line, g.process())
	}
	if g.often(4) {
		line[g.below(len(line))] = pick(g, nil, new(storepb.Process), &storepb.Process{
			Pid: 1, BootId: strings.Repeat("b", pick(g, MaxName, MaxName+1)), SeenFrom: make([]uint64, pick(g, 30, 100)),
		})
	}
	if g.often(2) {
		line = slices.Repeat(line, 100)
	}
	return line
}

// mean gives a command what has to do with locks: what its caller saw, the name it used, who it is.
func (g *generator) mean(cmd *storepb.Command) {
	cmd.Caller.PidNamespace = pick[uint64](g, 0, 1, 1, 2)
	if g.often(50) {
		cmd.Caller.Lineage, cmd.Caller.Family = g.lineage(), pick[uint32](g, 0, 1, 2, 3, 3, math.MaxUint32)
	}
	if g.often(1) {
		cmd.Caller.Host = pick(g, "", "elsewhere", strings.Repeat("h", MaxName+1))
	}
	if says := saysIn(cmd.GetOp()); says != nil {
		*says = pick(g, storepb.NameSays_SAYS_NOTHING, storepb.NameSays_SAYS_LOCK, storepb.NameSays_SAYS_LOCK, storepb.NameSays_SAYS_DATA)
	}
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_OpenSession:
		op.OpenSession.Machine = pick(g, "", "m", "m", "m2")
	case *storepb.Op_TakeLock:
		op.TakeLock.Session = cmd.GetSession()
	case *storepb.Op_Create:
		op.Create.Unlisted = g.often(4)
		if op.Create.GetMode()&syscall.S_IFMT == syscall.S_IFLNK && g.often(40) {
			op.Create.Facts = g.facts()
		}
	case *storepb.Op_Unlink:
		op.Unlink.Force = g.often(10)
		op.Unlink.Observations = g.observations()
		op.Unlink.Owner = pick(g, "", "", "x", "y")
	case *storepb.Op_Rename:
		op.Rename.Observations = g.observations()
	case *storepb.Op_SetContent:
		op.SetContent.Observations = g.observations()
		if g.often(80) {
			op.SetContent.Name = g.nameFor(op.SetContent.GetIno())
		}
	}
}

// nameFor is a name of an inode, mostly.
func (g *generator) nameFor(ino uint64) *storepb.Observation {
	if names := g.ns.tree.namesOf(ids.Inode(ino)); len(names) > 0 && g.often(90) {
		e := pick(g, names...)
		return &storepb.Observation{Parent: uint64(e.parent), Name: []byte(e.name)}
	}
	return &storepb.Observation{Parent: g.dir(), Name: g.name()}
}

// observations are mostly right ones.
func (g *generator) observations() []*storepb.Observation {
	if g.often(60) || g.ns.tree.byName.Len() == 0 {
		return nil
	}
	var seen []*storepb.Observation
	for _, e := range g.ns.tree.byName.Items() {
		o := &storepb.Observation{Parent: uint64(e.parent), Name: []byte(e.name), Token: uint64(e.token), Empty: g.often(3)}
		if g.often(5) {
			o.Token = pick[uint64](g, 0, 1, uint64(e.token-1), uint64(e.token+1))
		}
		if g.often(60) {
			seen = append(seen, o)
		}
	}
	return seen
}

func (g *generator) lockOp() *storepb.Op {
	switch g.below(17) {
	case 15:
		return opOf(&storepb.TakeLock{
			Ino: g.file(), Owner: pick[uint64](g, 1, 2), Type: pick(g, storepb.LockType_EXCLUSIVE, storepb.LockType_SHARED, storepb.LockType_UNLOCK),
			Wait: g.often(50), Judged: g.judged(), Kin: g.often(50), Pid: uint32(g.below(3)),
		})
	case 16:
		return opOf(&storepb.DropLocks{Ino: g.file(), Owners: []uint64{1, 2}})
	case 12, 13:
		return opOf(g.goSilent())
	case 14:
		return opOf(&storepb.SetRule{Rule: g.rule()})
	case 0, 1, 2, 3, 4:
		op := g.setContent()
		return opOf(op)
	case 5, 6:
		return opOf(&storepb.Tick{})
	case 7, 8:
		return opOf(g.processGone())
	case 9:
		return opOf(&storepb.SetRule{Rule: g.rule()})
	case 10:
		return opOf(&storepb.DeleteRule{Pattern: g.pattern()})
	default:
		return opOf(&storepb.ForgetHost{Name: pick(g, "h", "h2", "h2", "", "unknown")})
	}
}

// judged are processes of which a mount says whether a caller is of their family: mostly all that there are.
func (g *generator) judged() (judged []*storepb.Process) {
	if g.often(10) {
		return []*storepb.Process{nil, new(storepb.Process)}
	}
	for _, h := range g.ns.tree.byProcess.byProcess.Items() {
		judged = append(judged, h.says.process.message())
	}
	for _, m := range g.ns.tree.byProcess.byCreator.Items() {
		judged = append(judged, (&process{processID: m.by}).message())
	}
	return judged
}

// goSilent ends a session; when it was the last of its host, that is silent.
func (g *generator) goSilent() *storepb.EndSession {
	op := &storepb.EndSession{Id: pick[uint64](g, 1, 2, 3, 4, 5, 6)}
	if s, found := g.ns.sessions.byID.Get(ids.Session(op.GetId())); found {
		op.IfActive = uint64(s.active)
	}
	return op
}

func (g *generator) processGone() *storepb.ProcessGone {
	op := new(storepb.ProcessGone)
	for range g.below(3) {
		op.Processes = append(op.Processes, g.process())
	}
	for _, h := range g.ns.tree.byProcess.byProcess.Items() {
		if g.often(40) {
			op.Processes = append(op.Processes, h.says.process.message())
		}
	}
	for _, m := range g.ns.tree.byProcess.byCreator.Items() {
		if g.often(40) {
			op.Processes = append(op.Processes, (&process{processID: m.by}).message())
		}
	}
	for range op.GetProcesses() {
		if g.often(80) {
			op.Ended = append(op.Ended, pick(g, 0, g.now, g.now, math.MinInt64, math.MaxInt64))
		}
		if g.often(90) {
			op.Ends = append(op.Ends, pick(g, nil,
				&storepb.ProcessEnd{Kind: storepb.EndKind_END_EXIT, Number: 3},
				&storepb.ProcessEnd{Kind: storepb.EndKind_END_SIGNAL, Number: 9}, &storepb.ProcessEnd{Kind: storepb.EndKind_END_SIGNAL, Number: 15}))
		}
	}
	return op
}

func (g *generator) rule() *storepb.Rule {
	rule := &storepb.Rule{
		Pattern: g.pattern(), Format: pick(g, "", "", "", "", "", "", "pid", "semaphore", "none", "bogus"),
		StaleAfter: pick[int64](g, 0, 1, int64(time.Second), int64(10*time.Second), int64(time.Minute), math.MaxInt64),
		OnStale:    pick(g, "", "", "keep", "remove", "remove"), Guard: pick(g, "", "", "host", "anyone"),
		HostTimeout: pick[int64](g, 0, 1, 1, 1, int64(time.Second), int64(10*time.Second), math.MaxInt64),
	}
	if g.often(35) {
		rule.Holder = "creator"
	}
	rule.AnyFile = g.often(30) && (rule.GetHolder() != "" && rule.GetOnStale() != "keep" || rule.GetOnStale() == "remove" || g.often(5))
	if g.often(10) {
		rule = &storepb.Rule{Pattern: rule.GetPattern(), Format: "data"}
	}
	if g.often(3) {
		rule.StaleAfter = -1
	}
	return rule
}

func (g *generator) pattern() string {
	if g.often(5) {
		return pick(g, "", "[", "/", "a//b", strings.Repeat("p", glob.MaxLength+1))
	}
	return pick(g, "a", "[ab]", "*", "**", "/a", "a/*", "b/**", "**/c")
}
