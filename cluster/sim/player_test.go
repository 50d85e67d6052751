package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"lockfs/test/history"
)

// player does at random what a program with locks might do, in one directory through one mount. After a call of unknown outcome, or
// when its mount has died, it goes on as another client, a few times.
type player struct {
	w      *world
	mount  *mount
	dir    *directory
	random *rand.Rand
	client int // its number in the history
	seq    int
	calls  int // left
	lives  int // left
	made   int
	open   []opened
	gen    int // of the mount
}

type opened struct {
	name string
	seq  int
	ino  uint64
}

// directory is that of one history.
type directory struct {
	name string
	ino  uint64

	mu     sync.Mutex
	calls  []*history.Call
	tokens []token
}

// longestPause is between two calls, when there is one.
const longestPause = 80 * time.Millisecond

func (p *player) play() {
	for p.calls > 0 && p.lives > 0 {
		moves[p.random.IntN(len(moves))](p)
		if p.random.IntN(3) == 0 {
			time.Sleep(time.Duration(p.random.Int64N(int64(longestPause))))
		}
	}
}

// moves are in proportion to how often they are made.
var moves = []func(*player){
	(*player).take, (*player).take, (*player).take,
	(*player).append, (*player).append,
	(*player).directory,
	(*player).takeByLink, (*player).takeByRename,
	(*player).move,
	(*player).remove, (*player).remove, (*player).remove,
	(*player).look, (*player).look, (*player).look,
	(*player).useOpen, (*player).useOpen, (*player).useOpen,
	(*player).seeToken, (*player).seeToken,
	func(p *player) { p.did(history.Stat, p.shared()) },
	func(p *player) { p.did(history.Stat, p.shared()) },
	func(p *player) { p.did(history.List) },
}

func (p *player) shared() string { return history.Shared[p.random.IntN(len(history.Shared))] }

func (p *player) temporary() string {
	p.made++
	return fmt.Sprintf("tmp-%d-%d", p.client, p.made)
}

func (p *player) text() string {
	p.made++
	return fmt.Sprintf("<%03d-%03d>", p.client, p.made)
}

// record does a call and writes it down. It is false if the player is not who it was.
func (p *player) record(call *history.Call) bool {
	p.calls--
	m := p.mount
	client, gen := m.await()
	if gen != p.gen {
		p.gen = gen
		p.open = nil // what was open went with the mount
		if call.OnDescriptor() {
			return false
		}
	}
	p.seq++
	call.Client, call.Seq, call.Host, call.Dir = p.client, p.seq, m.name, p.dir.name
	call.Start = p.w.now()
	recorded := *call
	do(context.Background(), client, p.dir.ino, call)
	stood := false
	for thaw := m.h.thawed(); thaw != nil && m.generation() == gen; thaw = m.h.thawed() {
		stood = true
		<-thaw
	}
	if m.generation() != gen {
		*call = recorded // nobody was told
		call.Errno = syscall.ENOTCONN
	}
	// A process that stood still, and was killed so, has not heard what its mount has struck off the journal as told.
	if call.Errno != syscall.ENOTCONN || !stood {
		call.End = p.w.now()
	}
	if call.Errno == syscall.ETIMEDOUT && call.End == call.Start {
		p.w.noteDone("calls that failed at once") // nothing was sent
		time.Sleep(longestPause + time.Duration(p.random.Int64N(int64(5*longestPause))))
		return false
	}
	p.dir.add(call)
	p.w.count(call)
	if !call.Unknown() {
		m.done(call)
		return true
	}
	if call.End != 0 {
		m.leaveOpen(call)
	}
	p.lives--
	p.open = nil
	p.client, p.seq = p.dir.newClient(p.w), 0
	return false
}

func (p *player) did(kind history.Kind, names ...string) bool {
	call := &history.Call{Kind: kind}
	if len(names) > 0 {
		call.Name = names[0]
	}
	if len(names) > 1 {
		call.To = names[1]
	}
	return p.record(call) && call.Errno == 0
}

// opens answers the file, and whether it is one.
func (p *player) opens(kind history.Kind, name string) (opened, bool) {
	call := &history.Call{Kind: kind, Name: name}
	if !p.record(call) || call.Errno != 0 || call.Got.Dir {
		return opened{}, false
	}
	return opened{name, call.Seq, call.Got.Ino}, true
}

func (p *player) file(kind history.Kind, f opened, data string) bool {
	call := &history.Call{Kind: kind, Name: f.name, Opened: f.seq, Ino: f.ino, Data: data}
	return p.record(call) && call.Errno == 0
}

// keep keeps a file open for later, in place of the one that was kept longest.
func (p *player) keep(f opened) {
	const most = 2
	if p.open = append(p.open, f); len(p.open) > most {
		p.open = p.open[1:]
	}
}

func (p *player) take() {
	if f, ok := p.opens(history.Create, p.shared()); ok {
		p.keep(f)
		p.file(history.Write, f, p.text())
	}
}

func (p *player) append() {
	if f, ok := p.opens(history.Open, p.shared()); ok {
		p.keep(f)
		p.file(history.Append, f, p.text())
	}
}

func (p *player) directory() {
	if p.random.IntN(2) == 0 {
		p.did(history.Rmdir, p.shared())
		return
	}
	p.did(history.Mkdir, p.shared())
}

func (p *player) takeByLink() {
	name := p.temporary()
	f, ok := p.opens(history.Create, name)
	if ok && p.file(history.Write, f, p.text()) && p.did(history.Link, name, p.shared()) && p.did(history.Stat, name) {
		p.did(history.Unlink, name)
	}
}

func (p *player) takeByRename() {
	name := p.temporary()
	f, ok := p.opens(history.Create, name)
	if !ok || !p.file(history.Write, f, p.text()) {
		return
	}
	kind := history.Rename
	if p.random.IntN(2) == 0 {
		kind = history.NoReplace
	}
	if !p.did(kind, name, p.shared()) {
		p.did(history.Unlink, name)
	}
}

func (p *player) move() {
	from, to := p.shared(), p.shared()
	switch {
	case from == to:
		p.did(history.Stat, from)
	case p.random.IntN(2) == 0:
		p.did(history.NoReplace, from, to)
	default:
		p.did(history.Rename, from, to)
	}
}

func (p *player) remove() { p.did(history.Unlink, p.shared()) }

func (p *player) look() {
	if f, ok := p.opens(history.Look, p.shared()); ok && p.file(history.Fstat, f, "") {
		p.file(history.Read, f, "")
	}
}

func (p *player) useOpen() {
	if len(p.open) == 0 {
		return
	}
	f := p.open[p.random.IntN(len(p.open))]
	switch p.random.IntN(6) {
	case 0:
		p.file(history.Write, f, p.text())
	case 1, 2:
		p.file(history.Append, f, p.text())
	case 3:
		p.file(history.Truncate, f, "")
	case 4:
		p.file(history.Fstat, f, "")
	default:
		p.file(history.Read, f, "")
	}
}
