package history

import (
	"cmp"
	"slices"
	"strings"
	"syscall"
)

// look is the last look of a process, or of one of its descriptors, at a name. Two locks of a name differ if
// the name was free in between. Histories write no holders, so a replaced lock is still the same lock.
type look struct {
	process int
	opened  int // Seq of the call that opened the descriptor; 0: a look of the process
	name    string

	gone   bool // the name has been free since
	empty  bool // when it was read
	unsure bool // it may also have no look
	made   bool // created or written to by the process
	listed bool // the process has listed the names since: only a lock that it made counts
	noted  bool // of a descriptor: the process has this look
}

// view is a call's relation to the looks of its process. It follows from the calls alone.
type view struct {
	process int  // a new mount means a new process
	notes   bool // its look at a name matters to a later call
	keeps   bool // so does a look through the descriptor that it opens
	raced   bool // the name may have been free at the begin of the call
}

// heldFor returns the names for which a call may be refused because of looks.
func (c *Call) heldFor() []string {
	switch c.Kind {
	case Unlink, Rmdir, NoReplace, Truncate:
		return []string{c.Name}
	case Rename:
		return []string{c.Name, c.To}
	}
	return nil
}

// notes returns the name under which a call creates or reads a lock. Reading attributes and opening are no
// looks.
func (c *Call) notes() (name string, some bool) {
	switch c.Kind {
	case Create, Open, Mkdir, Read, Write, Append, Truncate:
		return c.Name, true
	case Link, Rename, NoReplace:
		return c.To, true
	}
	return "", false
}

// viewsOf goes through the calls backward, so that only looks needed by later calls are kept.
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

// processesOf numbers the processes as mounts see them. Looks end with the mount's process; then the client
// gets no answers until it enters the next mount.
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

// raced reports whether an open may have found the name free, and then taken when it wanted to create. Such a
// descriptor has no look.
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

// loseSight handles a name that became free. Other facts about earlier looks do not matter any more.
func (c *change) loseSight(name string) {
	c.looks = slices.DeleteFunc(c.looks, func(l look) bool { return l.name == name && l.listed })
	for i, l := range c.looks {
		if l.name == name {
			l.gone, l.empty, l.made = true, false, false
			c.looks[i] = l
		}
	}
}

// forget handles a removal by the process itself: its looks at the name do not count.
func (c *change) forget(process int, name string) {
	c.looks = slices.DeleteFunc(c.looks, func(l look) bool { return l.process == process && l.opened == 0 && l.name == name })
}

// forgetAll handles a listing by the process.
func (c *change) forgetAll(process int) {
	c.looks = slices.DeleteFunc(c.looks, func(l look) bool { return l.process == process && l.opened == 0 && !l.made })
	for i, l := range c.looks {
		if l.process == process && l.opened == 0 {
			c.looks[i].listed = true
		}
	}
}

// doubt handles a possible listing by the process.
func (c *change) doubt(process int) {
	for i, l := range c.looks {
		if l.process == process && l.opened == 0 {
			l.unsure = true
			c.looks[i] = l
		}
	}
}

// noteMade records that a process has created the present file of a name.
func (c *change) noteMade(a *action, name string) {
	if a.notes {
		c.putLook(look{process: a.process, name: name, made: true})
	}
	if a.keeps {
		c.putLook(look{process: a.process, opened: a.call.Seq, name: name, noted: true})
	}
}

// noteOpened records the name at the open of a descriptor.
func (s *state) noteOpened(a *action) *state {
	if s == nil || !a.keeps {
		return s
	}
	c := s.change()
	c.putLook(look{process: a.process, opened: a.call.Seq, name: a.name, unsure: a.raced})
	return c.done()
}

// noteThrough records a read or write through a descriptor. It is a look at the present lock of its name, or,
// for a reader, at its former lock if the name has another file now. Emptying a file precedes a write; it is
// no look.
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

// harm is the effect of a call on the lock of a name, and the error for a process with a look at another
// lock.
type harm struct {
	name  string
	to    *inode
	errno syscall.Errno
}

// harms returns the effects of a possible call.
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

// outcomes returns the possible results of a possible call; 0: success.
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

// judge returns the reason for a refusal, if any. It is not sure about a lock that was and still is empty:
// for five seconds after a change, its creator may be about to write. This is cluster time, which can be
// slower than the clock here, or jump.
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
