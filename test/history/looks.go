package history

import (
	"cmp"
	"slices"
	"strings"
	"syscall"
)

// look is what a process, or one of its descriptors, saw last of a name. Locks of a name are told apart by
// whether the name was free in between: nothing that histories write says who holds a lock, so a name that
// is replaced is the same lock still.
type look struct {
	process int
	opened  int // Seq of the call that opened the descriptor; 0: it is the process' own memory
	name    string

	gone   bool // the name has been free since
	empty  bool // when it was read
	unsure bool // it may as well know nothing
	made   bool // by the process, or written to
	listed bool // the process has listed the names since: it is held to nothing, but what it made is its own still
	noted  bool // of a descriptor: the process knows of it
}

// view is what a call has to do with the memory of its process. It follows from the calls alone.
type view struct {
	process int  // one that has another mount is another process
	notes   bool // what it sees under a name matters to a later call
	keeps   bool // so does what is seen through the descriptor that it opens
	raced   bool // the name may have been free when the call began
}

// heldFor lists the names for which a call may be refused because of what its process saw.
func (c *Call) heldFor() []string {
	switch c.Kind {
	case Unlink, Rmdir, NoReplace, Truncate:
		return []string{c.Name}
	case Rename:
		return []string{c.Name, c.To}
	}
	return nil
}

// notes answers the name under which a call makes or sees a lock. Asking for attributes is not seeing,
// nor is opening.
func (c *Call) notes() (name string, some bool) {
	switch c.Kind {
	case Create, Open, Mkdir, Read, Write, Append, Truncate:
		return c.Name, true
	case Link, Rename, NoReplace:
		return c.To, true
	}
	return "", false
}

// viewsOf looks at the calls backward, so that nothing is remembered which no later call depends on.
func viewsOf(calls []*Call) map[*Call]view {
	type place struct {
		process int
		name    string
	}
	type descriptor struct{ process, opened int }
	held, used := make(map[place]bool), make(map[descriptor]bool)
	processes, views := processesOf(calls), make(map[*Call]view)
	for _, call := range slices.Backward(calls) {
		v := view{process: processes[call]}
		name, some := call.notes()
		v.notes = some && held[place{v.process, name}]
		v.keeps = used[descriptor{v.process, call.Seq}]
		if v.keeps && call.Kind == Open {
			v.raced = raced(call, calls)
		}
		if v.notes && call.OnDescriptor() {
			used[descriptor{v.process, call.Opened}] = true
		}
		for _, name := range call.heldFor() {
			held[place{v.process, name}] = true
		}
		views[call] = v
	}
	return views
}

// processesOf numbers the processes, as mounts know them: what a mount remembers ends with its own process,
// and then the client gets at nothing until it has entered the next one.
func processesOf(calls []*Call) map[*Call]int {
	last, processes := 0, make(map[*Call]int)
	byClient := make(map[int]int)
	for _, call := range calls {
		if byClient[call.Client] == 0 {
			last++
			byClient[call.Client] = last
		}
		processes[call] = byClient[call.Client]
		if call.Errno == syscall.ENOTCONN || call.Errno == syscall.ECONNABORTED {
			byClient[call.Client] = 0
		}
	}
	return processes
}

// raced tells whether an open may have found the name free, and then, when it wanted to create, taken: such
// a descriptor does not know what lock it was opened by.
func raced(open *Call, calls []*Call) bool {
	return slices.ContainsFunc(calls, func(c *Call) bool {
		name, some := c.notes()
		takes := some && name == open.Name && !c.OnDescriptor() || c.Kind == NoReplace && c.Name == open.Name
		overlaps := c.Start <= open.End && (c.Errno == 0 && c.End >= open.Start || c.Unknown())
		return takes && overlaps && c != open
	})
}

func compareLook(a, b look) int {
	return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.opened, b.opened), strings.Compare(a.name, b.name))
}

func (s *state) look(process, opened int, name string) (look, bool) {
	i, found := slices.BinarySearchFunc(s.looks, look{process: process, opened: opened, name: name}, compareLook)
	if !found {
		return look{}, false
	}
	return s.looks[i], true
}

func (c *change) putLook(l look) {
	i, found := slices.BinarySearchFunc(c.looks, l, compareLook)
	if !found {
		c.looks = slices.Insert(c.looks, i, look{})
	}
	c.looks[i] = l
}

// loseSight is for a name that became free. What else was seen of it makes no difference any more.
func (c *change) loseSight(name string) {
	c.looks = slices.DeleteFunc(c.looks, func(l look) bool { return l.name == name && l.listed })
	for i, l := range c.looks {
		if l.name == name {
			l.gone, l.empty, l.made = true, false, false
			c.looks[i] = l
		}
	}
}

// forget is for a name that a process removed itself: it is held to nothing that it saw of it.
func (c *change) forget(process int, name string) {
	c.looks = slices.DeleteFunc(c.looks, func(l look) bool { return l.process == process && l.opened == 0 && l.name == name })
}

// forgetAll is for a process that lists the names itself.
func (c *change) forgetAll(process int) {
	c.looks = slices.DeleteFunc(c.looks, func(l look) bool { return l.process == process && l.opened == 0 && !l.made })
	for i, l := range c.looks {
		if l.process == process && l.opened == 0 {
			c.looks[i].listed = true
		}
	}
}

// doubt is for a process that may have listed the names.
func (c *change) doubt(process int) {
	for i, l := range c.looks {
		if l.process == process && l.opened == 0 {
			l.unsure = true
			c.looks[i] = l
		}
	}
}

// noteMade notes that a process has made what a name is now.
func (c *change) noteMade(a *action, name string) {
	if a.notes {
		c.putLook(look{process: a.process, name: name, made: true})
	}
	if a.keeps {
		c.putLook(look{process: a.process, opened: a.call.Seq, name: name, noted: true})
	}
}

// noteOpened notes the name by which a descriptor was opened.
func (s *state) noteOpened(a *action) *state {
	if s == nil || !a.keeps {
		return s
	}
	c := s.change()
	c.putLook(look{process: a.process, opened: a.call.Seq, name: a.name, unsure: a.raced})
	return c.done()
}

// noteThrough notes what a process reads or writes through a descriptor: the lock that its name is, or, to a
// reader, was, if the name is another file's now. Who empties it is about to write to it; the descriptor learns nothing by that.
func (c *change) noteThrough(a *action, empty bool) {
	d, known := c.look(a.process, a.call.Opened, a.call.Name)
	if !known || !a.notes {
		return
	}
	seen := d
	e, found := c.entry(a.call.Name)
	switch {
	case found && e.ino == a.ino:
		seen.gone, seen.unsure, seen.empty = false, false, empty
	case a.verb == doContent:
		return
	}
	if seen.noted = true; a.call.Kind != Truncate {
		c.putLook(seen)
	}
	before, _ := c.look(a.process, 0, d.name)
	seen.opened, seen.noted = 0, false
	seen.made = a.verb == doContent || before.made && before.gone == seen.gone
	c.putLook(seen)
}

// harm is what a call does to the lock that a name is, and what it is told if that is refused because the
// lock is another one than its process saw.
type harm struct {
	name  string
	to    *inode
	errno syscall.Errno
}

// harms answers what a call would do that can be done.
func (s *state) harms(a *action) (all []harm, can bool) {
	if a.call.Kind == Truncate {
		in, found := s.inode(a.ino)
		if e, named := s.entry(a.name); named && e.ino == a.ino {
			all = []harm{{a.name, in, syscall.ESTALE}}
		}
		return all, found && !in.dir
	}
	in, found := s.named(a.name)
	if !found {
		return nil, false
	}
	removal := harm{a.name, in, syscall.ENOENT}
	if a.call.Kind == Unlink || a.call.Kind == Rmdir {
		return []harm{removal}, in.dir == (a.call.Kind == Rmdir)
	}
	old, taken := s.named(a.to)
	switch {
	case !taken:
		return []harm{removal}, true
	case old.ino == in.ino:
		return nil, a.call.Kind == Rename
	}
	return []harm{removal, {a.to, old, syscall.ESTALE}}, a.call.Kind == Rename && old.dir == in.dir
}

// outcomes are those that a call may have which can be done; 0: that it is done.
func (s *state) outcomes(a *action) (errnos []syscall.Errno) {
	harms, can := s.harms(a)
	if !can {
		return nil
	}
	for _, h := range harms {
		errno, sure := s.judge(a.process, h)
		if errno != 0 {
			errnos = append(errnos, errno)
		}
		if sure {
			return errnos
		}
	}
	return append(errnos, 0)
}

// judge answers why a process is refused, if it is. It is not sure of a lock that was and still is empty:
// for five seconds after it changed, somebody may be about to write to it. That is cluster time, which can
// be slower than ours, or leap.
func (s *state) judge(process int, h harm) (errno syscall.Errno, sure bool) {
	l, known := s.look(process, 0, h.name)
	switch {
	case !known || l.listed:
		return 0, false
	case l.gone:
		return h.errno, !l.unsure
	case l.empty && !l.made:
		return syscall.EBUSY, h.to.content != "" && !l.unsure
	}
	return 0, false
}

func (s *state) mayBeDone(a *action) bool { return slices.Contains(s.outcomes(a), 0) }
