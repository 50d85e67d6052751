package differential

import (
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Worker is a process that makes calls.
type Worker struct {
	Family

	conn    net.Conn
	calls   *json.Encoder
	answers *json.Decoder
}

// Await waits for a worker to connect.
func Await(socket net.Listener) (*Worker, error) {
	conn, err := socket.Accept()
	if err != nil {
		return nil, err
	}
	w := &Worker{conn: conn, calls: json.NewEncoder(conn), answers: json.NewDecoder(conn)}
	return w, w.answers.Decode(&w.Family)
}

// Close ends the worker.
func (w *Worker) Close() { _ = w.conn.Close() }

func (w *Worker) do(call Call) (a Answer, err error) {
	if err := w.calls.Encode(call); err != nil {
		return a, err
	}
	err = w.answers.Decode(&a)
	return a, err
}

// must makes an auxiliary call.
func (w *Worker) must(call Call) (Answer, error) {
	a, err := w.do(call)
	if err == nil && a.Errno != "" {
		err = fmt.Errorf("%s: %s", call, a.Errno)
	}
	return a, err
}

// Match compares a mount with a local disk. Each family has a worker on both; those of the mount are on their
// own hosts.
type Match struct {
	Mode  Mode
	Mount []*Worker
	Disk  []*Worker
	// Observer uses the mount and belongs to no family, so its reads count for none.
	Observer *Worker

	Calls    int            // calls made
	Refusals map[string]int // explained refusals by error

	sequences int
	writers   []writer
	guards    *guards
}

// Difference is an unexplained difference from the local disk.
type Difference struct {
	Step        int // number in the sequence; after the last: a difference at the end
	Family      int
	Call        Call
	Mount, Disk Answer
	Reason      string
}

// String returns the difference for messages.
func (d *Difference) String() string {
	if d == nil {
		return ""
	}
	d.Mount.Met, d.Disk.Met = nil, nil
	return fmt.Sprintf("%s: %d: %s\n  mount: %+v\n  disk:  %+v", d.Reason, d.Family, d.Call, d.Mount, d.Disk)
}

// Play plays a sequence in a directory of its own.
func (m *Match) Play(sequence []Step) (*Difference, error) {
	if m.Refusals == nil {
		m.Refusals = make(map[string]int)
	}
	var families []Family
	for _, w := range m.Mount {
		families = append(families, w.Family)
	}
	m.writers = writers(families)
	m.guards = newGuards(m.writers)
	m.sequences++
	for _, side := range [][]*Worker{m.Mount, m.Disk, {m.Observer}} {
		for _, w := range side {
			if _, err := w.must(Call{Op: enter, Path: fmt.Sprintf("%.1s-%d", m.Mode, m.sequences)}); err != nil {
				return nil, err
			}
		}
	}
	for i, step := range sequence {
		for _, call := range step.Calls {
			d, over, err := m.call(step.Family, call)
			if d != nil {
				d.Step = i
			}
			if over || d != nil || err != nil {
				return d, err
			}
		}
	}
	return m.end(len(sequence))
}

// end compares everything from all workers.
func (m *Match) end(step int) (*Difference, error) {
	for family := range m.Mount {
		d, err := m.compare(m.Mount[family], family, Call{Op: tree, Path: "."})
		if d != nil || err != nil {
			if d != nil {
				d.Step = step
			}
			return d, err
		}
	}
	return nil, nil
}

// call makes a call on both sides. over means that the call accidentally left the mode.
func (m *Match) call(family int, call Call) (d *Difference, over bool, err error) {
	m.Calls++
	m.guards.step++
	call.Data = m.writers[family].fill(call.Data)
	var before, after []Met
	if m.Mode == Locks || removes(&call) {
		if before, err = m.meet(family, call); err != nil {
			return nil, false, err
		}
	}
	if m.Mode != Locks {
		if d, err := m.listAround(family, call, before); d != nil || err != nil {
			return d, false, err
		}
	}
	if m.Mode == Locks && call.Op == RemoveAll && m.guards.inTheWay(family, before) {
		d, err := m.removeSome(family, call, before)
		return d, false, err
	}
	mount, err := m.Mount[family].do(call)
	if err != nil {
		return nil, false, err
	}
	if mount.Errno == "ESTALE" && before == nil {
		if before, err = m.meet(family, call); err != nil {
			return nil, false, err
		}
	}
	if m.guards.explain(m.Mode, family, &call, mount.Errno, before) {
		m.Refusals[mount.Errno]++
		if call.Op == Open { // it closed the slot
			_, err = m.Disk[family].do(Call{Op: Close, Slot: call.Slot})
		}
		return nil, false, err
	}
	disk, err := m.Disk[family].do(call)
	if err != nil {
		return nil, false, err
	}
	if !reflect.DeepEqual(mount, disk) {
		return &Difference{Family: family, Call: call, Mount: mount, Disk: disk, Reason: "not the same"}, false, nil
	}
	if m.Mode == Locks {
		m.guards.walked(family, before)
	}
	if disk.Errno != "" {
		return nil, false, nil
	}
	if m.Mode == Locks && m.guards.demand(family, &call, before) {
		return &Difference{Family: family, Call: call, Mount: mount, Disk: disk, Reason: "not refused, which is another host's lock"}, false, nil
	}
	if m.Mode == Locks || changes(&call) {
		if after, err = m.meet(family, call); err != nil {
			return nil, false, err
		}
	}
	if m.Mode != Locks {
		if removes(&call) {
			m.guards.done(family, &call, before, nil)
		}
		return nil, m.guards.accident(family, after), nil
	}
	m.guards.done(family, &call, before, after)
	return nil, false, nil
}

// meet returns the files at a call's paths.
func (m *Match) meet(family int, call Call) ([]Met, error) {
	at := call
	at.Op, at.Data = peek, string(call.Op)
	answer, err := m.Disk[family].must(at)
	return answer.Met, err
}

// compare makes a read-only call on both sides.
func (m *Match) compare(on *Worker, family int, call Call) (*Difference, error) {
	mount, err := on.do(call)
	if err != nil {
		return nil, err
	}
	disk, err := m.Disk[family].do(call)
	if err != nil || reflect.DeepEqual(mount, disk) {
		return nil, err
	}
	return &Difference{Family: family, Call: call, Mount: mount, Disk: disk, Reason: "not the same"}, nil
}

// listAround lists the parents of directories before a removal or rename, because an empty directory may be a
// lock.
func (m *Match) listAround(family int, call Call, met []Met) (*Difference, error) {
	switch call.Op {
	case Rename, NoReplace, Rmdir, RemoveAll:
	default:
		return nil, nil
	}
	if !slices.ContainsFunc(met, func(met Met) bool { return met.last().Kind == "d" }) {
		return nil, nil
	}
	for _, path := range []string{call.Path, call.To} {
		if path == "" {
			continue
		}
		if d, err := m.compare(m.Mount[family], family, Call{Op: List, Path: parent(path)}); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// removeSome is rm -rf of a tree of which a part may stay. Each remaining part needs a reason; the rest is
// removed from the local disk too.
func (m *Match) removeSome(family int, call Call, before []Met) (*Difference, error) {
	mount, err := m.Mount[family].do(call)
	if err != nil {
		return nil, err
	}
	still, err := m.Observer.must(Call{Op: peek, Path: call.Path, Data: string(RemoveAll)})
	if err != nil {
		return nil, err
	}
	left := append([]Named{still.Met[0].last()}, still.Met[0].Below...)
	for _, complaint := range mount.List {
		if !strings.HasSuffix(complaint, ": Device or resource busy") && !strings.HasSuffix(complaint, ": Directory not empty") {
			return &Difference{Family: family, Call: call, Mount: mount, Reason: "complaint"}, nil
		}
	}
	keep := Call{Op: prune, Path: call.Path}
	for _, n := range left {
		if n.Ino == 0 {
			continue
		}
		keep.Keep = append(keep.Keep, n.Path)
		holds := slices.ContainsFunc(left, func(other Named) bool { return strings.HasPrefix(other.Path, n.Path+"/") })
		if !holds && !m.guards.mayStay(family, n.Path, before) {
			return &Difference{Family: family, Call: call, Mount: mount, Reason: n.Path + " is left"}, nil
		}
	}
	if len(keep.Keep) > 0 {
		m.Refusals["rm -rf"]++
	}
	if before[0].last().Ino == 0 {
		return nil, nil
	}
	if _, err := m.Disk[family].must(keep); err != nil {
		return nil, err
	}
	m.guards.removed(family, before[0], keep.Keep)
	return m.compare(m.Observer, family, Call{Op: tree, Path: "."})
}

// Shorten searches for a shorter failing sequence. It returns the shortest one found in time and its
// difference. The result is the sequence itself if it does not fail again.
func (m *Match) Shorten(sequence []Step, d *Difference, limit time.Duration) ([]Step, *Difference, error) {
	deadline := time.Now().Add(limit)
	sequence = sequence[:min(d.Step+1, len(sequence))]
	for size := len(sequence) / 2; size > 0; {
		shorter := false
		for at := 0; at < len(sequence) && time.Now().Before(deadline); {
			rest := slices.Concat(sequence[:at], sequence[min(at+size, len(sequence)):])
			found, err := m.Play(rest)
			if err != nil {
				return sequence, d, err
			}
			if found == nil {
				at += size
				continue
			}
			sequence, d, shorter = rest[:min(found.Step+1, len(rest))], found, true
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	return sequence, d, nil
}

// truncates reports whether a call truncates its path.
func (c *Call) truncates() bool {
	return c.Op == Truncate || c.Op == Open && c.Flags&unix.O_TRUNC != 0
}
