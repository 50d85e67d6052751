package namespace

import (
	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// facts is the information in a file's content about its lock, without any rule. It is never modified. A
// content of no format has no facts.
type facts struct {
	lockfact.Facts
	tag     string
	process *process       // the holder; nil unless the lock lives as long as an identified process
	machine internedString // that had the host's name then; empty: unknown
}

// factsOf returns nil for a content of no format, which is evaluated by its evidence.
func factsOf(m *storepb.Facts) *facts {
	if m == nil || m.GetFormat() == storepb.Format_NO_FORMAT || m.GetFormat() == storepb.Format_NONE {
		return nil
	}
	return &facts{
		Facts: lockfact.Facts{
			Format: lockfact.Format(m.GetFormat()), Holder: m.GetHolder(), Host: intern(m.GetHost()).String(), PID: int(m.GetPid()),
			IssuedAt: m.GetIssuedAt(), ExpiresAt: m.GetExpiresAt(),
			Guard: lockfact.Guard(m.GetGuard()), OnStale: lockfact.OnStale(m.GetOnStale()), Invalid: m.GetInvalid(),
			Conditional: m.GetConditional(),
		},
		tag: m.GetTag(), process: processFrom(m.GetProcess()), machine: intern(m.GetMachine()),
	}
}

func (f *facts) message() *storepb.Facts {
	if f == nil {
		return nil
	}
	m := FactsMessage(f.Facts)
	m.Tag, m.Process, m.Machine = f.tag, f.process.message(), f.machine.String()
	return m
}

// FactsMessage encodes facts for a command.
func FactsMessage(f lockfact.Facts) *storepb.Facts {
	return &storepb.Facts{
		Format: storepb.Format(f.Format), Holder: f.Holder, Host: f.Host, Pid: uint32(f.PID),
		IssuedAt: f.IssuedAt, ExpiresAt: f.ExpiresAt, Guard: storepb.Guard(f.Guard), OnStale: storepb.OnStale(f.OnStale), Invalid: f.Invalid,
		Conditional: f.Conditional,
	}
}

// sameHolder reports whether two contents are of one acquisition. Two processes that used one pid in turn are
// two holders.
func (f *facts) sameHolder(g *facts) bool {
	if !f.SameHolder(g.Facts) {
		return false
	}
	return f.process == nil || g.process == nil || f.process.processID == g.process.processID
}

// forAnyone returns the facts of a stale lock while a writer takes it over: the next holder is still unknown.
func (f *facts) forAnyone() *facts {
	known := *f
	known.machine = internedString{}
	if f.process != nil {
		known.process = &process{processID: f.process.processID}
	}
	return &known
}

// maxFacts bounds facts without their tag, in bytes, which keeps snapshots readable. A tag is part of the
// content.
const maxFacts = 4 << 10

// mayKeep reports whether a snapshot can hold the facts.
func mayKeep(m *storepb.Facts) bool {
	return !tooManyFacts(m) &&
		isKnown(storepb.Format_name, m.GetFormat()) && isKnown(storepb.Guard_name, m.GetGuard()) && isKnown(storepb.OnStale_name, m.GetOnStale())
}

func isKnown[T ~int32](names map[int32]string, number T) bool {
	_, known := names[int32(number)]
	return known
}

func tooManyFacts(m *storepb.Facts) bool {
	return len(m.GetTag()) > MaxContent || proto.Size(m)-len(m.GetTag()) > maxFacts
}
