package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Shared are the names used by all clients of a history. Each client also has names of its own for temporary
// files.
var Shared = []string{"lock", "list", "queue"}

// thinking is the longest time between a look at a lock and its removal.
const thinking = 50 * time.Millisecond

// errLeft ends a client after a call of unknown outcome.
var errLeft = errors.New("left the history")

// player makes random calls like a program with locks.
type player struct {
	*Client
	random *rand.Rand
	calls  int // remaining
	made   int // temporary names and contents so far
	open   []*File
}

// Play makes about this number of random calls, some after a pause. It leaves after a call of unknown
// outcome.
func (c *Client) Play(random *rand.Rand, calls int, longestPause time.Duration) error {
	p := &player{Client: c, random: random, calls: calls}
	defer func() {
		for _, file := range p.open {
			file.Close()
		}
		c.Leave()
	}()
	err := c.Enter()
	for err == nil && p.calls > 0 {
		err = moves[random.IntN(len(moves))](p)
		if longestPause > 0 && random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(longestPause))))
		}
	}
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// moves has each move in proportion to its frequency.
var moves = []func(*player) error{
	(*player).take, (*player).take, (*player).take,
	(*player).append, (*player).append,
	(*player).directory,
	(*player).takeByLink, (*player).takeByLink,
	(*player).takeByRename, (*player).takeByRename,
	(*player).move,
	(*player).remove, (*player).remove,
	(*player).takeAway,
	(*player).breakLock, (*player).breakLock,
	(*player).look, (*player).look,
	(*player).useOpen, (*player).useOpen,
	func(p *player) error { return p.names(Stat, p.shared()) },
	func(p *player) error { return p.names(Stat, p.shared()) },
	func(p *player) error { return p.names(List) },
}

func (p *player) shared() string { return Shared[p.random.IntN(len(Shared))] }

func (p *player) number() int {
	p.made++
	return p.made
}

func (p *player) temporary() string { return fmt.Sprintf("tmp-%d-%d", p.id, p.number()) }

// text returns a new text; all have the same length.
func (p *player) text() string { return fmt.Sprintf("<%02d-%03d>", p.id, p.number()) }

// after handles the result of a call: errLeft for an unknown outcome, and a new attempt to enter the
// directory if it was gone.
func (p *player) after(call *Call, err error) error {
	p.calls--
	switch {
	case err != nil:
		return err
	case call.Unknown():
		return errLeft
	case call.Orphaned():
		for _, file := range p.open {
			file.Close()
		}
		p.open = nil
		return p.Enter()
	}
	return nil
}

func (p *player) names(kind Kind, names ...string) error {
	_, err := p.did(kind, names...)
	return err
}

// did reports whether a call was done.
func (p *player) did(kind Kind, names ...string) (bool, error) {
	call, err := p.Do(kind, names...)
	return err == nil && call.Errno == 0, p.after(call, err)
}

func (p *player) opened(kind Kind, name string) (*File, error) {
	call, file, err := p.Open(kind, name)
	return file, p.after(call, err)
}

func (p *player) file(kind Kind, file *File, data string) error {
	call, err := p.DoFile(kind, file, data)
	return p.after(call, err)
}

// keep keeps a file open for later, and closes the one kept longest.
func (p *player) keep(file *File) {
	const most = 2
	if p.open = append(p.open, file); len(p.open) > most {
		p.open[0].Close()
		p.open = p.open[1:]
	}
}

// take creates a name exclusively and writes to it.
func (p *player) take() error {
	file, err := p.opened(Create, p.shared())
	if file == nil || err != nil {
		return err
	}
	p.keep(file)
	if err := p.file(Fstat, file, ""); err != nil || len(p.open) == 0 {
		return err
	}
	return p.file(Write, file, p.text())
}

func (p *player) append() error {
	file, err := p.opened(Open, p.shared())
	if file == nil || err != nil {
		return err
	}
	p.keep(file)
	return p.file(Append, file, p.text())
}

func (p *player) directory() error {
	if p.random.IntN(2) == 0 {
		return p.names(Rmdir, p.shared())
	}
	return p.names(Mkdir, p.shared())
}

// prepare makes a temporary file with content; "" after an error.
func (p *player) prepare() (name string, err error) {
	name = p.temporary()
	file, err := p.opened(Create, name)
	if file == nil || err != nil {
		return "", err
	}
	p.keep(file)
	return name, p.file(Write, file, p.text())
}

// takeByLink is the way of programs that do not trust O_EXCL: they link a temporary file to the lock's name.
func (p *player) takeByLink() error {
	name, err := p.prepare()
	if name == "" || err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return p.names(Link, name, p.shared()) },
		func() error { return p.names(Stat, name) },
		func() error { return p.names(Unlink, name) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) takeByRename() error {
	name, err := p.prepare()
	if name == "" || err != nil {
		return err
	}
	kind := Rename
	if p.random.IntN(2) == 0 {
		kind = NoReplace
	}
	moved, err := p.did(kind, name, p.shared())
	if moved || err != nil {
		return err
	}
	return p.names(Unlink, name)
}

func (p *player) move() error {
	from, to := p.shared(), p.shared()
	switch {
	case from == to:
		return p.names(Stat, from)
	case p.random.IntN(2) == 0:
		return p.names(NoReplace, from, to)
	}
	return p.names(Rename, from, to)
}

func (p *player) remove() error { return p.names(Unlink, p.shared()) }

// takeAway removes a name in the way of lock breakers: they first rename it to a name of their own.
func (p *player) takeAway() error {
	name := p.temporary()
	moved, err := p.did(Rename, p.shared(), name)
	if !moved || err != nil {
		return err
	}
	if removed, err := p.did(Unlink, name); removed || err != nil {
		return err
	}
	return p.names(Rmdir, name)
}

// breakLock looks at a lock, and then removes or replaces it. The name may have another lock by then.
func (p *player) breakLock() error {
	name := p.shared()
	file, err := p.opened(Open, name)
	if file == nil || err != nil {
		return err
	}
	p.keep(file)
	if err := p.file(Read, file, ""); err != nil || len(p.open) == 0 {
		return err
	}
	time.Sleep(time.Duration(p.random.Int64N(int64(thinking))))
	switch p.random.IntN(4) {
	case 0:
		return p.file(Truncate, file, "")
	case 1:
		return p.names(Rename, name, p.temporary())
	case 2:
		mine, err := p.prepare()
		if mine == "" || err != nil {
			return err
		}
		return p.names(Rename, mine, name)
	}
	return p.names(Unlink, name)
}

func (p *player) look() error {
	file, err := p.opened(Look, p.shared())
	if file == nil || err != nil {
		return err
	}
	defer file.Close()
	if err := p.file(Fstat, file, ""); err != nil || file.Dir {
		return err
	}
	return p.file(Read, file, "")
}

// useOpen uses a file opened earlier, which may have been removed.
func (p *player) useOpen() error {
	if len(p.open) == 0 {
		return nil
	}
	file := p.open[p.random.IntN(len(p.open))]
	switch p.random.IntN(6) {
	case 0:
		return p.file(Write, file, p.text())
	case 1, 2:
		return p.file(Append, file, p.text())
	case 3:
		return p.file(Truncate, file, "")
	case 4:
		return p.file(Fstat, file, "")
	}
	return p.file(Read, file, "")
}
