package differential

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// guards models the refusals that lockfs may and must make. It follows the calls on the local disk.
//
// There are three reasons for a refusal:
//
//   - a call removes, replaces, truncates or writes to a live lock of another host, or to one that its holder
//     has just emptied to rewrite it (EBUSY);
//   - the family did not create the lock and read it while it was empty, because its creator may be about to
//     write (EBUSY);
//   - the family read or created a lock here or for a parent, and another family has replaced it
//     (ENOENT for a removal, ESTALE for a replacement).
//
// A family forgets the names that it removes, and the names in a directory that it lists. If another host
// removed the last name of a file that was a lock, a write may fail (ESTALE).
type guards struct {
	writers []writer
	step    int // the number of the call

	exclusive map[Place]bool    // created so, and not replaced since
	names     map[Place][]int   // each family's last change of the name
	inodes    map[uint64][]int  // each family's last change of the content
	wrote     map[uint64]int    // the family of the last change
	whole     map[uint64]string // the first content of the empty file, if it is a lock
	emptied   map[uint64]bool   // the file was a lock before
	removedBy map[uint64]int    // the family of the last removal
	looks     []map[Place]look  // of each family
	opened    []map[int]openness
}

// look is a family's look at a lock.
type look struct {
	step  int
	empty bool // when it was read
	made  bool
}

// openness is the way in which a file was opened.
type openness struct {
	way  []Named
	step int
}

func newGuards(writers []writer) *guards {
	g := &guards{
		writers: writers, exclusive: make(map[Place]bool), names: make(map[Place][]int), inodes: make(map[uint64][]int),
		wrote: make(map[uint64]int), whole: make(map[uint64]string), removedBy: make(map[uint64]int),
		emptied: make(map[uint64]bool),
	}
	for range writers {
		g.looks = append(g.looks, make(map[Place]look))
		g.opened = append(g.opened, make(map[int]openness))
	}
	return g
}

// explain reports whether a refusal has a reason.
func (g *guards) explain(mode Mode, family int, c *Call, errno string, met []Met) bool {
	if len(met) == 0 {
		return false
	}
	if mode != Locks {
		return false
	}
	writes := c.onSlot() && changes(c)
	if file := met[0].last(); errno == "ESTALE" && writes && file.Nlink == 0 {
		return g.removedBy[file.Ino] != family
	}
	way := met[0].Way
	if writes {
		way = g.opened[family][c.Slot].way
	}
	switch errno {
	case "EBUSY":
		return (removes(c) || writes || c.truncates()) && slices.ContainsFunc(harmed(c, met), func(n Named) bool { return g.busy(family, n) })
	case "ENOENT":
		return removes(c) && g.outdated(family, way)
	case "ESTALE":
		return (writes || c.truncates()) && g.outdated(family, way) || c.Op == Rename && g.outdated(family, met[1].Way)
	}
	return false
}

// removes reports whether a call removes or replaces a name.
func removes(c *Call) bool {
	switch c.Op {
	case Unlink, Rmdir, Rename, NoReplace, RemoveAll:
		return true
	}
	return false
}

// changes reports whether a call changes a file's content, except by emptying it.
func changes(c *Call) bool {
	switch c.Op {
	case Write, Pwrite, Ftruncate, Truncate:
		return true
	}
	return false
}

// harmed returns everything that a call removes, replaces or changes.
func harmed(c *Call, met []Met) (all []Named) {
	if c.Op == NoReplace {
		met = met[:1]
	}
	for _, m := range met {
		all = append(append(all, m.last()), m.Below...)
	}
	return all
}

// busy reports whether a file is protected from this family.
func (g *guards) busy(family int, n Named) bool {
	if n.Ino == 0 || n.Kind == "d" {
		return false
	}
	l, seen := g.looks[family][n.Place]
	return seen && l.empty && !l.made && g.lockLike(n) || g.foreign(family, n) || g.emptied[n.Ino] && g.wrote[n.Ino] != family
}

// foreign reports whether a file may be a live lock of another host, or of an unknown one.
func (g *guards) foreign(family int, n Named) bool {
	if !g.isLock(n.Content) && !g.namesProcess(n.Content) {
		return false
	}
	others := slices.ContainsFunc(g.writers, func(w writer) bool {
		return w.family != g.writers[family].family && strings.Contains(n.Content, w.family.Host)
	})
	return g.wrote[n.Ino] != family || others || strings.Contains(n.Content, "urn:forrst")
}

// namesProcess reports whether a content or a link target names a process with its host, so an exclusive name
// is a pid lock.
func (g *guards) namesProcess(content string) bool {
	return slices.ContainsFunc(g.writers, func(w writer) bool {
		return strings.Contains(content, w.family.Host) && strings.Contains(content, strconv.Itoa(w.family.PID))
	})
}

// isLock reports whether a content may be a lock by itself.
func (g *guards) isLock(content string) bool {
	number, err := strconv.Atoi(strings.Trim(content, " \t\r\n\x00"))
	return err == nil && g.isPID(number) || slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(content, mark) })
}

func (g *guards) isPID(number int) bool {
	return slices.ContainsFunc(g.writers, func(w writer) bool { return w.family.PID == number })
}

// lockLike reports whether a name may have a lock, by content or creation.
func (g *guards) lockLike(n Named) bool {
	switch {
	case n.Ino == 0:
		return false
	case n.Kind == "-" && g.isLock(n.Content):
		return true
	case !g.exclusive[n.Place]:
		return false
	case n.Kind == "d" || n.Content == "":
		return true
	}
	digits := strings.ReplaceAll("0123456789", g.writers[0].digit, "")
	return strings.ContainsAny(n.Content, digits) || slices.ContainsFunc(g.writers, func(w writer) bool {
		return strings.Contains(n.Content, w.family.Host)
	})
}

// outdated reports whether a family has looked at another lock than the present one, under some name on the
// path.
func (g *guards) outdated(family int, way []Named) bool {
	return slices.ContainsFunc(way, func(n Named) bool {
		l, seen := g.looks[family][n.Place]
		if !seen || !g.lockLike(n) {
			return false
		}
		for other := range g.writers {
			if other != family && (since(g.names[n.Place], other, l.step) || since(g.inodes[n.Ino], other, l.step)) {
				return true
			}
		}
		return false
	})
}

func since(steps []int, family, step int) bool { return steps != nil && steps[family] > step }

// demand reports whether a call must be refused: it removes, replaces or empties a lock of another host that
// is guarded by its host, as last written.
func (g *guards) demand(family int, c *Call, met []Met) bool {
	switch {
	case c.Op == Unlink, c.Op == NoReplace, c.truncates():
		return g.held(family, met[0].last())
	case c.Op == Rename && met[0].last().Ino != met[1].last().Ino:
		return g.held(family, met[0].last()) || g.held(family, met[1].last())
	}
	return false
}

func (g *guards) held(family int, n Named) bool {
	guarded := g.whole[n.Ino] != "" && !strings.Contains(n.Content, "task_id") && !strings.Contains(n.Content, "urn:forrst")
	return guarded && g.whole[n.Ino] == n.Content && g.wrote[n.Ino] != family
}

// inTheWay reports whether a part of a removed tree may stay.
func (g *guards) inTheWay(family int, met []Met) bool {
	return g.outdated(family, met[0].Way) || slices.ContainsFunc(met[0].Below, func(n Named) bool { return g.busy(family, n) }) ||
		g.busy(family, met[0].last())
}

// mayStay is inTheWay for one path. A family that lists a directory sees its names anew, so only names on the
// path can be outdated.
func (g *guards) mayStay(family int, path string, met []Met) bool {
	return g.outdated(family, met[0].Way) || slices.ContainsFunc(append(met[0].Below, met[0].last()), func(n Named) bool {
		return n.Path == path && g.busy(family, n)
	})
}

// done records a call.
func (g *guards) done(family int, c *Call, before, after []Met) {
	was, is := before[0].last(), Named{}
	if len(after) > 0 {
		is = after[0].last()
	}
	switch c.Op {
	case Open:
		if was.Ino == 0 {
			g.made(family, after[0], c.Flags&unix.O_EXCL != 0)
			g.changed(family, is, was)
		} else if c.Flags&unix.O_TRUNC != 0 {
			g.changed(family, is, was)
			g.saw(family, after[0].Way, g.step, true)
		}
		g.opened[family][c.Slot] = openness{after[0].Way, g.step}
	case Write, Pwrite, Ftruncate:
		g.changed(family, is, was)
		o := g.opened[family][c.Slot]
		g.saw(family, with(o.way, is), g.step, true)
	case Truncate:
		g.changed(family, is, was)
		g.saw(family, after[0].Way, g.step, true)
	case Read:
		o := g.opened[family][c.Slot]
		g.saw(family, with(o.way, is), o.step, false)
	case Cat, Readlink:
		g.saw(family, after[0].Way, g.step, false)
	case List:
		for place := range g.looks[family] {
			if place.Dir == is.Ino {
				delete(g.looks[family], place)
			}
		}
	case Rename, NoReplace:
		to := before[1].last()
		if to.Ino == was.Ino {
			return
		}
		g.gone(family, was, false)
		g.gone(family, to, true)
		if after != nil {
			g.made(family, after[1], c.Op == NoReplace)
		}
	case Link:
		g.made(family, after[1], true)
	case Symlink, Mkdir:
		g.made(family, after[0], true)
	case Unlink, Rmdir, RemoveAll:
		g.removed(family, before[0], nil)
	}
}

// with returns a path whose end is the current file.
func with(way []Named, is Named) []Named {
	way = slices.Clone(way)
	if len(way) > 0 {
		way[len(way)-1].Ino, way[len(way)-1].Content = is.Ino, is.Content
	}
	return way
}

// made records a new name.
func (g *guards) made(family int, m Met, exclusive bool) {
	n := m.last()
	g.mark(g.named(n.Place), family)
	g.exclusive[n.Place] = exclusive
	g.saw(family, m.Way, g.step, true)
}

// changed records a new content.
func (g *guards) changed(family int, is, was Named) {
	if g.inodes[is.Ino] == nil {
		g.inodes[is.Ino] = make([]int, len(g.writers))
	}
	g.mark(g.inodes[is.Ino], family)
	g.wrote[is.Ino] = family
	g.emptied[is.Ino] = begins(is.Content) && (g.isLock(was.Content) || g.emptied[is.Ino])
	delete(g.whole, is.Ino)
	if was.Content == "" && g.isLock(is.Content) {
		g.whole[is.Ino] = is.Content
	}
}

func (g *guards) named(at Place) []int {
	if g.names[at] == nil {
		g.names[at] = make([]int, len(g.writers))
	}
	return g.names[at]
}

func (g *guards) mark(steps []int, family int) { steps[family] = g.step }

// saw records that a family has read or created a lock, or a directory on its path.
func (g *guards) saw(family int, way []Named, step int, made bool) {
	for i, n := range way {
		if !g.lockLike(n) {
			continue
		}
		before, seen := g.looks[family][n.Place]
		if i < len(way)-1 {
			if !seen {
				g.looks[family][n.Place] = look{step: step}
			}
			continue
		}
		mine := made || seen && before.made && !g.outdated(family, []Named{n})
		g.looks[family][n.Place] = look{step: step, empty: n.Content == "", made: mine}
	}
}

// walked records the paths of a call in any case: the kernel reads symbolic links for the program.
func (g *guards) walked(family int, met []Met) {
	for _, m := range met {
		for _, link := range m.Links {
			g.saw(family, []Named{link}, g.step, false)
		}
	}
}

// gone records a removed name; the file may have no other.
func (g *guards) gone(family int, n Named, removed bool) {
	if n.Ino == 0 {
		return
	}
	g.mark(g.named(n.Place), family)
	delete(g.exclusive, n.Place)
	delete(g.looks[family], n.Place)
	if removed && n.Nlink == 1 {
		g.removedBy[n.Ino] = family
	}
}

// removed records a removed tree except kept names. A file may have several names in it, so any removal of
// one may be the last.
func (g *guards) removed(family int, m Met, keep []string) {
	for _, n := range append([]Named{m.last()}, m.Below...) {
		if n.Ino == 0 || slices.Contains(keep, n.Path) {
			continue
		}
		g.gone(family, n, true)
		if len(m.Below) > 0 && n.Nlink > 1 {
			g.removedBy[n.Ino] = family
		}
	}
}

// accident reports whether a family has written a lock foreign to the mode: joined numbers can become a pid.
func (g *guards) accident(family int, met []Met) bool {
	return slices.ContainsFunc(met, func(m Met) bool {
		number, err := strconv.Atoi(strings.TrimSpace(m.last().Content))
		return err == nil && number == g.writers[family].family.PID
	})
}

// begins reports whether a content may be the first part of a lock that its holder is rewriting.
func begins(content string) bool {
	return content == "" || strings.HasPrefix(content, "{") || slices.ContainsFunc([]string{"pid=", "timestamp=", "tag="}, func(key string) bool {
		return strings.HasPrefix(content, key) || strings.HasPrefix(key, content)
	})
}
