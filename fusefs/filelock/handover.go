package filelock

import (
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Saved is an owner's state, for the mount's next process.
type Saved struct {
	Kind    storepb.LockKind
	Owner   ids.Owner
	Through []uint64    // handles of its requests; the last used is last
	Ranges  [][2]uint64 // both ends included
}

// Save returns all locks and requests, by the numbers of their handles. done is false during releases, or
// during requests which are not suspended.
func (f *File) Save(number func(*Description) (handle uint64, isOpen bool)) (saved []Saved, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.dropping) > 0 {
		return nil, false
	}
	for key, own := range f.owners {
		if own.underway > own.waiting {
			return nil, false
		}
		s := Saved{Kind: key.Kind, Owner: key.Number}
		for _, through := range own.through {
			if handle, isOpen := number(through); isOpen {
				s.Through = append(s.Through, handle)
			}
		}
		for _, r := range own.ranges {
			s.Ranges = append(s.Ranges, [2]uint64{r.start, r.end})
		}
		saved = append(saved, s)
	}
	return saved, true
}

// Restore is for a new file.
func (f *File) Restore(saved Saved, through []*Description) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owners == nil {
		f.owners = make(map[Owner]*owned)
	}
	own := &owned{through: through}
	for _, r := range saved.Ranges {
		own.ranges = append(own.ranges, lockRange{r[0], r[1]})
	}
	key := Owner{saved.Kind, saved.Owner}
	f.owners[key] = own
	f.kept(key)
}

// SavedDescription is a [Description].
type SavedDescription struct {
	Session ids.Session
	Closing bool // see [Description.IsClosing]
}

// Save returns the state of the description.
func (d *Description) Save() SavedDescription {
	d.mu.Lock()
	defer d.mu.Unlock()
	return SavedDescription{d.session, d.isClosing()}
}

// Restore is for a new description.
func (d *Description) Restore(saved SavedDescription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = saved.Session
	if saved.Closing {
		d.closed = time.Now() // the kernel reports nothing while the mount is not served
	}
	d.keep()
}
