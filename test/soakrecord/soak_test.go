//go:build soak

package soakrecord

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/faultinjection"
	"lockfs/test/hosts"
	"lockfs/test/ledger"
	"lockfs/test/testcluster"
	"lockfs/test/workload"
)

const (
	term      = 3 * time.Second
	opTimeout = 4 * time.Second
	validity  = time.Minute // of certificates
	entries   = "300"       // between two snapshots
	rest      = "1"         // seconds between two attempts of a program: to begin programs is what a soak needs most processor time for
)

// A soak is one cluster, and what was done with it.
type soak struct {
	c    *testcluster.Cluster
	site *faultinjection.Site
	seed uint64   // of the piece
	told []string // which faults began in it, when and to whom

	underFaults, inCalm time.Duration // the longest call of other users beside a hostile one

	pieces, histories, undecided, calls, lockCalls, holds, rounds, left, events int
}

// TestSoak does one piece after the other: programs and histories are under way on all hosts while harm is done, then all is mended,
// they end, and what they saw is checked.
func TestSoak(t *testing.T) {
	t.Setenv(hosts.LogsVariable, *bundle)
	program := testcluster.FaultyProgram(t)
	t.Setenv(testcluster.ProgramVariable, program)
	t.Setenv("LOCKFS", program)
	t.Setenv("REST", rest)
	timeout := "--op-timeout=" + opTimeout.String()
	c := testcluster.NewCluster(t, "--session-term="+term.String(), "--lock-delay=0", "--min-free=16M", "--snapshot-entries="+entries, timeout)
	c.Secure, c.Program = *secure, program
	s := &soak{c: c}
	entry := ledger.New(ledger.Soak)
	t.Cleanup(func() {
		if t.Failed() && s.site != nil {
			s.leave(t)
		}
		if s.site != nil {
			s.enter(t, entry)
		}
	})
	s.site = faultinjection.NewSite(t, c, testcluster.NextFaultyProgram(t), *servers, *guests, term, validity, timeout)
	c.Nodes[0].SetRule(t, "h*/*", "--stale-after", "10000h") // all names of these are locks: the model knows nothing of data
	s.site.Tell = s.tell
	atStart := s.site.Figures()
	say("seed %d; %d servers with a vote, %d mounts; at the start:\n%s", *seed, *servers, *servers+1+*guests, faultinjection.Describe(atStart))
	for began := time.Now(); time.Since(began) < *duration && !t.Failed(); {
		s.seed = *seed + uint64(s.pieces)
		s.play(t, s.seed)
		say("after %.0fs and seed %d: %s", time.Since(began).Seconds(), s.seed, s)
	}
	atEnd := s.site.Figures()
	covered, all := s.site.Coverage.Pairs()
	begun, left := s.site.Coverage.Strikes()
	say("which fault came at which moment: %d of %d pairs; %d faults, %d found nobody free\n%s", covered, all, begun, left, s.site.Coverage)
	say("at the end:\n%s", faultinjection.Describe(atEnd))
	say("seeds from %d to %d: %s; %.0f elections, %.0f commands", *seed, s.seed, s,
		newest(atEnd).Term-newest(atStart).Term, newest(atEnd).Applied-newest(atStart).Applied)
}

// tell notes a fault that begins.
func (s *soak) tell(what string) {
	s.told = append(s.told, fmt.Sprintf("%s %s\n", time.Now().UTC().Format("15:04:05.000"), what))
	if *each {
		say("%s", what)
	}
}

// newest is the figure of who has come furthest.
func newest(figures []faultinjection.Figure) (last faultinjection.Figure) {
	for _, f := range figures {
		if f.Applied > last.Applied {
			last = f
		}
	}
	return last
}

func (s *soak) String() string {
	return fmt.Sprintf("%d pieces, %d histories (%d undecided) of %d calls and %d on locks, %d holds, %d turns of programs, %d locks of commands left behind, audit logs of %d events, longest call beside a hostile user %v under faults and %v without",
		s.pieces, s.histories, s.undecided, s.calls, s.lockCalls, s.holds, s.rounds, s.left, s.events,
		s.underFaults.Round(time.Millisecond), s.inCalm.Round(time.Millisecond))
}

// play does a piece.
func (s *soak) play(t *testing.T, seed uint64) {
	t.Helper()
	drawn := kindsDrawn(t)
	s.told, s.site.Replaced, s.site.Unsettled = nil, nil, nil
	on := s.site.Hosts()
	begin := func(kind string) *workload.Bustle {
		return &workload.Bustle{
			Cluster: s.c, Hosts: on, Name: fmt.Sprintf("%s%d-", kind, seed), Seed: seed, AtOnce: 1, Clients: *clients, DisksFill: true,
		}
	}
	names, locks, holds := begin("h"), begin("l"), begin("o")
	names.Calls = 50
	locks.Calls, locks.Files = 60, []string{"x", "y"}
	holds.Holds = 60
	programs := startPrograms(t, s.c, on, seed)
	hostility := startHostility(t, s.c, on, seed)
	var stops []func()
	for _, b := range []*workload.Bustle{names, locks, holds} {
		stops = append(stops, b.Start(t))
	}
	for _, b := range []*workload.Bustle{names, locks, holds} {
		b.AwaitBegun(t)
	}
	s.site.Run(faultinjection.Schedule(faultinjection.Size{Seed: seed, Length: *piece, AtOnce: *atOnce, Term: term, Only: drawn}))
	s.site.Settle(t)
	underFaults, inCalm := hostility.finish(t, on[0])
	s.underFaults, s.inCalm = max(s.underFaults, underFaults), max(s.inCalm, inCalm)
	for _, stop := range stops {
		stop()
	}
	rounds, left := programs.finish(t, on[0], s.site.Replaced)
	s.rounds += rounds
	s.left += left

	for _, b := range []*workload.Bustle{names, locks, holds} {
		b.Removed, b.Unsettled = s.site.Replaced, s.site.Unsettled
	}
	checked, undecided := names.Check(t)
	s.count(t, undecided)
	s.calls += len(checked.Calls)
	locked, undecided := locks.CheckLocks(t, opTimeout, 0)
	s.count(t, undecided)
	s.lockCalls += len(locked.Calls)
	_, held := holds.CheckHolds(t)
	s.holds += held
	workload.AwaitUnlocked(t, s.c)
	s.c.RequireSameState(t)
	s.events = s.site.VerifyAudit(t)
	for _, b := range []*workload.Bustle{names, locks, holds} {
		s.histories += b.Dirs()
		b.Forget(t)
	}
	s.pieces++
}

// count notes histories that could not be decided in time.
func (s *soak) count(t *testing.T, undecided error) {
	t.Helper()
	if undecided != nil {
		s.undecided++
		t.Logf("%v", undecided)
	}
}

// enter adds what there was to the ledger.
func (s *soak) enter(t *testing.T, e *ledger.Entry) {
	t.Helper()
	e.FirstSeed, e.LastSeed = *seed, s.seed
	e.Histories, e.Undecided, e.Operations = int64(s.histories), int64(s.undecided), int64(s.calls+s.lockCalls)
	e.Counts["pieces"], e.Counts["turns of programs"], e.Counts["holds"] = int64(s.pieces), int64(s.rounds), int64(s.holds)
	e.Faults, e.Left, e.Coverage = s.site.Coverage.Counted()
	if t.Failed() {
		e.Findings = append(e.Findings, command(s.seed))
	}
	require.NoError(t, e.Add())
}

// leave keeps all that may tell how a failure came. The logs of all processes come there afterwards.
func (s *soak) leave(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(*bundle, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(*bundle, "faults"), []byte(strings.Join(s.told, "")), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(*bundle, "repeat"), []byte(command(s.seed)+"\n"), 0o644))
	s.site.Save(t, *bundle)
	host := s.c.Nodes[0].Host
	if said, err := host.Run("sh", "-c", `find "$1" -maxdepth 1 \( -name '*.calls' -o -name '*.witness' \) -exec cp -r {} "$2" \;`, "sh", s.c.Net.Dir(), *bundle); err != nil {
		t.Logf("records: %s %v", said, err)
	}
	say("FAILED with seed %d; the faults, records, data and logs are in %s; once more:\n%s", s.seed, *bundle, command(s.seed))
}
