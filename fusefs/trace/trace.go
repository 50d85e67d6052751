// Package trace hands what programs asked of a mount and were answered to whoever reads it. Nothing is recorded while nobody does.
package trace

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// Calls is what a mount is asked. The zero value is ready.
type Calls struct {
	on      atomic.Bool
	mu      sync.Mutex
	readers map[*Reader]struct{}
}

// On tells whether anybody reads.
func (c *Calls) On() bool { return c.on.Load() }

// Begin is when a call begins (CLOCK_BOOTTIME).
func (c *Calls) Begin() time.Duration { return hostinfo.BootTime() }

// clusterClocks is how far cluster time may be apart when it is told by one leader and by the next.
const clusterClocks = 100 * time.Millisecond

// boot is the id of the host's boot.
var boot = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// Tell records a call that has ended, whose mount knows so much of itself. What it was for is in call already.
func (c *Calls) Tell(call *lockjson.Call, began time.Duration, mount *storepb.MountStatus) {
	ended := hostinfo.BootTime()
	at := func(t time.Duration) time.Time { return time.Unix(0, int64(t)+mount.GetClusterAhead()).UTC() }
	call.Host, call.Boot, call.Begin, call.End = mount.GetHost(), boot(), at(began), at(ended)
	call.BootBegin, call.BootEnd = int64(began), int64(ended)
	call.Within = clusterClocks + time.Duration(mount.GetAheadWithin())
	line := append(lockjson.CallLine(call), '\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	for reader := range c.readers {
		reader.take(line, call)
	}
}

// Reader gets lines of JSON ([lockjson.Call]), of each call that ends while it is open.
type Reader struct {
	calls *Calls
	news  chan struct{} // has something when there is a line

	mu    sync.Mutex
	lines []byte
	lost  uint64
	end   *lockjson.Call // after which some were lost
}

// most is how many bytes a reader may be behind.
const most = 8 << 20

// Open begins to record for a reader, with what another one has not read yet.
func (c *Calls) Open(unread []byte) *Reader {
	r := &Reader{calls: c, news: make(chan struct{}, 1), lines: unread}
	if len(unread) > 0 {
		r.news <- struct{}{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readers == nil {
		c.readers = make(map[*Reader]struct{})
	}
	c.readers[r] = struct{}{}
	c.on.Store(true)
	return r
}

// Close ends recording for the reader.
func (r *Reader) Close() {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	delete(r.calls.readers, r)
	r.calls.on.Store(len(r.calls.readers) > 0)
}

// take keeps a line, if there is room, after one that says how many were lost.
func (r *Reader) take(line []byte, call *lockjson.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines)+len(line) > most {
		r.lost++
		r.end = call
		return
	}
	if r.lost > 0 {
		gap := *r.end
		gap.Call, gap.Lost = lockjson.CallLost, r.lost
		gap.Directory, gap.Name, gap.ToDirectory, gap.ToName, gap.Inode, gap.Owner = 0, "", 0, "", 0, ""
		r.lines = append(append(r.lines, lockjson.CallLine(&gap)...), '\n')
		r.lost = 0
	}
	r.lines = append(r.lines, line...)
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// News delivers something when there may be lines to read.
func (r *Reader) News() <-chan struct{} { return r.news }

// Read takes up to so many bytes of what there is; none if there is nothing.
func (r *Reader) Read(size int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(size, len(r.lines))
	data := r.lines[:n:n]
	if r.lines = r.lines[n:]; len(r.lines) > 0 {
		select {
		case r.news <- struct{}{}:
		default:
		}
	}
	return data
}

// Unread is what was not read yet, for who goes on in another process.
func (r *Reader) Unread() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines
}
