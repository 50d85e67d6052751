package history

import (
	"maps"
	"slices"
	"syscall"
)

// verb is the effect of an action on the model. A call is one action or several (see expand).
type verb int

const (
	// Observations.
	seeFree    verb = iota // there is no such name
	seeTaken               // there is
	seeFile                // there is, of a file
	seeDir                 // there is, of a directory
	seeName                // the name is of an inode
	seeAttr                // an inode's names and size
	seeContent             // a file's content
	seeGone                // an inode has no name
	seeAll                 // all names, each with its inode
	seeNothing             // of what was to be listed
	seeRefused             // a change is impossible, or refused to this process

	// Changes.
	doMake     // a new inode with a name that was free
	doOpen     // the same, or open the existing file
	doRemove   // a name
	doLink     //
	doRename   //
	doContent  // of a file
	doTakeBack // undo a creation of unknown outcome
	doGiveUp   // end another call of unknown outcome: it does nothing if it comes later
)

// action is a step of the model.
type action struct {
	call *Call
	verb verb
	name string
	to   string
	ino  int64 // of the new inode: below 0 if unknown
	dir  bool

	// maybe: it need not have been done. If it is impossible, it does nothing instead of being wrong.
	maybe bool
	// number is 1 + the number of a call of unknown outcome that may be undone or end, also for its undo;
	// otherwise 0. maker is the same for creations only.
	number, maker int

	view
}

// model has the constants of the steps.
type model struct {
	asked map[int64]bool // inodes used by calls without a name
	// sessionsLast: no mount lost its session, so a file removed by a mount stays writable there.
	sessionsLast bool
}

// step returns the state after an action, nil if it is impossible in this state.
func (m *model) step(s *state, a *action) *state {
	switch a.verb {
	case seeFree, seeTaken, seeFile, seeDir:
		return m.seeKind(s, a)
	case seeName:
		return s.reveal(a.name, a.ino, a.dir).noteOpened(a)
	case seeAttr, seeContent, seeGone:
		return m.seeInode(s, a)
	case seeAll:
		return m.seeAll(s, a)
	case seeNothing:
		c := s.change()
		c.doubt(a.process)
		return c.done()
	case seeRefused:
		return m.seeRefused(s, a)
	}
	next := m.do(s, a)
	if next == nil && a.maybe {
		return s
	}
	return next
}

func (m *model) do(s *state, a *action) *state {
	switch {
	case a.verb == doTakeBack:
		return m.takeBack(s, a)
	case a.verb == doGiveUp:
		c := s.change()
		c.void |= 1 << (a.number - 1)
		return c.done()
	case a.number != 0 && s.void&(1<<(a.number-1)) != 0:
		return nil
	}
	switch a.verb {
	case doMake:
		return m.make(s, a)
	case doOpen:
		return m.open(s, a)
	case doRemove:
		return m.remove(s, a)
	case doLink:
		return m.link(s, a)
	case doRename:
		return m.rename(s, a)
	case doContent:
		return m.content(s, a)
	}
	return nil
}

func (m *model) seeKind(s *state, a *action) *state {
	in, found := s.named(a.name)
	seen := !found
	switch a.verb {
	case seeTaken:
		seen = found
	case seeFile:
		seen = found && !in.dir
	case seeDir:
		seen = found && in.dir
	}
	if !seen {
		return nil
	}
	return s
}

func (m *model) seeInode(s *state, a *action) *state {
	in, found := s.inode(a.ino)
	got := a.call.Got
	seen := false
	switch a.verb {
	case seeAttr:
		// Size and names of a directory do not matter here.
		seen = !found && got.Dir || found && in.dir == got.Dir &&
			(in.dir || in.nlink == int(got.Nlink) && len(in.content) == int(got.Size))
	case seeContent:
		seen = found && in.content == got.Content
	case seeGone:
		seen = m.isGone(s, a)
	}
	switch {
	case !seen:
		return nil
	case a.verb == seeContent && a.notes:
		c := s.change()
		c.noteThrough(a, in.content == "")
		return c.done()
	}
	return s
}

// isGone reports whether an inode may not be written to any more.
func (m *model) isGone(s *state, a *action) bool {
	in, found := s.inode(a.ino)
	return !found || in.nlink == 0 && (!m.sessionsLast || in.removedBy != a.call.Host)
}

func (m *model) seeRefused(s *state, a *action) *state {
	gone := false
	switch {
	case a.call.Kind == Truncate:
		gone = a.call.Errno == syscall.ESTALE && m.isGone(s, a)
	case a.call.Errno == syscall.ENOENT:
		_, found := s.entry(a.name)
		gone = !found
	}
	if !gone && !slices.Contains(s.outcomes(a), a.call.Errno) {
		return nil
	}
	return s
}

func (m *model) seeAll(s *state, a *action) *state {
	if len(s.entries) != len(a.call.Got.Entries) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(a.call.Got.Entries)) {
		in, found := s.named(name)
		if !found {
			return nil
		}
		if s = s.reveal(name, int64(a.call.Got.Entries[name]), in.dir); s == nil {
			return nil
		}
	}
	c := s.change()
	c.forgetAll(a.process)
	return c.done()
}

func (m *model) make(s *state, a *action) *state {
	_, taken := s.entry(a.name)
	_, used := s.inode(a.ino)
	if taken || used {
		return nil
	}
	c := s.change()
	c.addInode(inode{ino: a.ino, dir: a.dir, nlink: 1, changer: a.maker})
	c.addEntry(entry{name: a.name, ino: a.ino, maker: a.maker})
	c.noteMade(a, a.name)
	return c.done()
}

// open may create. If its inode is unknown, any file fits.
func (m *model) open(s *state, a *action) *state {
	in, found := s.named(a.name)
	switch {
	case !found:
		return m.make(s, a)
	case in.dir:
		return nil
	case a.ino < 0:
		return s
	}
	return s.reveal(a.name, a.ino, false).noteOpened(a)
}

func (m *model) remove(s *state, a *action) *state {
	if !s.mayBeDone(a) {
		return nil
	}
	in, _ := s.named(a.name)
	c := s.change()
	c.deleteEntry(a.name)
	c.unlink(in.ino, a.call.Host, m.asked[in.ino])
	if !a.call.Unknown() {
		c.forget(a.process, a.name)
	}
	return c.done()
}

func (m *model) link(s *state, a *action) *state {
	in, found := s.named(a.name)
	_, taken := s.entry(a.to)
	if !found || taken || in.dir {
		return nil
	}
	c := s.change()
	linked, _ := c.inode(in.ino)
	linked.nlink++
	linked.changer = a.maker
	c.addEntry(entry{name: a.to, ino: in.ino, maker: a.maker})
	c.noteMade(a, a.to)
	return c.done()
}

func (m *model) rename(s *state, a *action) *state {
	if !s.mayBeDone(a) {
		if s.movedBefore(a) {
			return s
		}
		return nil
	}
	in, _ := s.named(a.name)
	old, taken := s.named(a.to)
	if taken && old.ino == in.ino {
		return s
	}
	c := s.change()
	c.deleteEntry(a.name)
	moved, _ := c.inode(in.ino)
	moved.changer = a.maker
	if taken {
		replaced, _ := c.entry(a.to)
		*replaced = entry{name: a.to, ino: in.ino, moved: a.call}
		c.unlink(old.ino, a.call.Host, m.asked[old.ino])
	} else {
		c.addEntry(entry{name: a.to, ino: in.ino, maker: a.maker, moved: a.call})
	}
	if !a.call.Unknown() {
		c.forget(a.process, a.name)
	}
	c.noteMade(a, a.to)
	return c.done()
}

// movedBefore reports whether another call may have done the same during a rename. The kernel looks up one
// name after the other, and does nothing if both have one file.
func (s *state) movedBefore(a *action) bool {
	e, found := s.entry(a.to)
	return found && a.call.Kind == Rename && e.moved != nil && e.moved.Name == a.name &&
		(e.moved.End >= a.call.Start || e.moved.Unknown())
}

// content writes through a descriptor. A file without a name accepts writes from every mount if it was data,
// which the history does not show.
func (m *model) content(s *state, a *action) *state {
	in, found := s.inode(a.ino)
	if !found || in.dir || in.nlink == 0 && in.removedBy == "" {
		return nil // it was undone
	}
	if a.call.Kind == Truncate && !s.mayBeDone(a) {
		return nil
	}
	data := a.call.Data
	switch {
	case a.call.Kind == Append:
		data = in.content + data
	case a.call.Kind == Write && len(data) < len(in.content):
		data += in.content[len(data):]
	}
	c := s.change()
	written, _ := c.inode(a.ino)
	written.content, written.changer = data, 0
	c.noteThrough(a, false)
	return c.done()
}

// takeBack undoes a creation, unless the name has another file or its inode was changed since. A name that
// cannot go back to its old place is removed. An undone file accepts no writes.
func (m *model) takeBack(s *state, a *action) *state {
	c := s.change()
	c.void |= 1 << (a.maker - 1)
	made := slices.IndexFunc(s.entries, func(e entry) bool { return e.maker == a.maker })
	if made < 0 {
		return c.done()
	}
	e := s.entries[made]
	if in, _ := c.inode(e.ino); in.changer != a.maker {
		return c.done()
	}
	c.deleteEntry(e.name)
	if _, taken := s.entry(a.call.Name); a.call.Kind == NoReplace && !taken {
		c.addEntry(entry{name: a.call.Name, ino: e.ino})
		back, _ := c.inode(e.ino)
		back.changer = 0
		return c.done()
	}
	c.unlink(e.ino, "", m.asked[e.ino])
	return c.done()
}
