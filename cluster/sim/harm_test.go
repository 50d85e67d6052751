package sim

import (
	"cmp"
	"maps"
	"slices"
	"testing/synctest"
	"time"
)

// harm is something that goes wrong, and how it is mended.
type harm struct {
	name string
	// do answers how to mend it, and after how much time; nil: it cannot be done now, or needs no mending.
	do func(w *world) (mend func(), after time.Duration)
}

var harms = []harm{
	{"server killed", func(w *world) (func(), time.Duration) { return w.stopServer(true) }},
	{"power of a server cut", func(w *world) (func(), time.Duration) { return w.stopServer(false) }},
	{"power of a server cut in a write", (*world).tearServer},
	{"mount killed", (*world).killMount},
	{"link cut in one direction", func(w *world) (func(), time.Duration) {
		from, to := w.anyHost(), w.servers[w.random.IntN(len(w.servers))].h
		if w.random.IntN(2) == 0 {
			from, to = to, from
		}
		w.net.setCut(from.address, to.address, true)
		return func() { w.net.setCut(from.address, to.address, false) }, w.moment(4 * time.Second)
	}},
	{"link cut in both directions", func(w *world) (func(), time.Duration) {
		a, b := w.anyHost(), w.servers[w.random.IntN(len(w.servers))].h
		set := func(cut bool) {
			w.net.setCut(a.address, b.address, cut)
			w.net.setCut(b.address, a.address, cut)
		}
		set(true)
		return func() { set(false) }, w.moment(8 * time.Second)
	}},
	{"host cut off", func(w *world) (func(), time.Duration) {
		h := w.anyHost()
		set := func(cut bool) {
			for _, other := range slices.Sorted(maps.Keys(w.net.hosts)) {
				if other != h.address {
					w.net.setCut(h.address, other, cut)
					w.net.setCut(other, h.address, cut)
				}
			}
		}
		set(true)
		return func() { set(false) }, w.moment(4 * time.Second)
	}},
	{"host frozen", func(w *world) (func(), time.Duration) {
		h := w.anyHost()
		h.freeze(true)
		return func() { h.freeze(false) }, w.moment(4 * time.Second)
	}},
	{"connections reset", func(w *world) (func(), time.Duration) {
		w.anyHost().reset()
		return nil, 0
	}},
	{"network slow", func(w *world) (func(), time.Duration) {
		w.net.change(func() { w.net.slow = w.moment(300 * time.Millisecond) })
		return func() { w.net.change(func() { w.net.slow = 0 }) }, w.moment(3 * time.Second)
	}},
	{"disk slow", func(w *world) (func(), time.Duration) {
		d := w.servers[w.random.IntN(len(w.servers))].disk
		d.setSlow(w.moment(time.Second))
		return func() { d.setSlow(0) }, w.moment(3 * time.Second)
	}},
	{"clock set", func(w *world) (func(), time.Duration) {
		s := w.servers[w.random.IntN(len(w.servers))]
		s.setClock(w.moment(2*time.Hour)-time.Hour, 0)
		return nil, 0
	}},
	{"clock drifts", func(w *world) (func(), time.Duration) {
		s := w.servers[w.random.IntN(len(w.servers))]
		s.setClock(0, w.moment(time.Second)-500*time.Millisecond)
		return nil, 0
	}},
}

// moment is some time, and at most so much.
func (w *world) moment(most time.Duration) time.Duration {
	return time.Millisecond + time.Duration(w.random.Int64N(int64(most)))
}

func (w *world) anyHost() *host {
	n := w.random.IntN(len(w.servers) + len(w.mounts))
	if n >= len(w.servers) {
		return w.mounts[n-len(w.servers)].h
	}
	return w.servers[n].h
}

func (d *disk) setSlow(most time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = most
}

func (w *world) anyRunning() *server {
	s := w.servers[w.random.IntN(len(w.servers))]
	if s.running() == nil {
		return nil
	}
	return s
}

func (w *world) stopServer(power bool) (func(), time.Duration) {
	s := w.anyRunning()
	if s == nil {
		return nil, 0
	}
	synctest.Wait()
	s.stop(power)
	return s.start, w.moment(3 * time.Second)
}

// tearServer cuts the power of a server in its next write, if there is one soon.
func (w *world) tearServer() (func(), time.Duration) {
	s := w.anyRunning()
	if s == nil {
		return nil, 0
	}
	written := make(chan struct{})
	s.disk.arm(func(before, after image) {
		torn, what := tear(before, after, s.random)
		w.noteDone("power cut in a write: " + what)
		s.mu.Lock()
		s.torn = torn
		s.mu.Unlock()
		s.h.stop(false)
		close(written)
	})
	select {
	case <-written:
	case <-time.After(time.Second):
		s.disk.arm(nil)
	}
	synctest.Wait()
	s.stop(false)
	return s.start, w.moment(3 * time.Second)
}

func (d *disk) arm(armed func(before, after image)) { d.armAfter(0, armed) }

// armAfter has the power fail in a write, after some others.
func (d *disk) armAfter(skip int, armed func(before, after image)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.skip, d.armed = skip, armed
}

func (w *world) killMount() (func(), time.Duration) {
	m := w.mounts[w.random.IntN(len(w.mounts))]
	if m.near != nil || !m.isRunning() { // one in a server ends with that
		return nil, 0
	}
	synctest.Wait()
	m.h.stop(true)
	m.die()
	return func() {
		m.h.start()
		w.playing.Go(m.start)
	}, w.moment(5 * time.Second)
}

// mending is what is to be mended, and when.
type mending struct {
	at   time.Time
	mend func()
}

// mostHarms is how many last at the same time.
const mostHarms = 3

// harm harms the world until the players are done, and mends everything then.
func (w *world) harm(done <-chan struct{}) {
	var broken []mending
	isMore := func() bool {
		select {
		case <-done:
			return false
		case <-time.After(w.moment(400 * time.Millisecond)):
			return true
		}
	}
	deadline := time.Now().Add(patience)
	for isMore() {
		for len(broken) > 0 && !broken[0].at.After(time.Now()) {
			broken[0].mend()
			broken = broken[1:]
		}
		if len(broken) >= mostHarms || len(w.harms) == 0 || time.Now().After(deadline) {
			continue
		}
		h := w.harms[w.random.IntN(len(w.harms))]
		w.noteDone(h.name)
		if mend, after := h.do(w); mend != nil {
			broken = append(broken, mending{time.Now().Add(after), mend})
			slices.SortStableFunc(broken, func(a, b mending) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
		}
	}
	for _, b := range broken {
		b.mend()
	}
	for _, s := range w.servers {
		s.setClock(0, 0)
	}
}
