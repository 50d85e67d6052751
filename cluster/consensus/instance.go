package consensus

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// Instances tells the processes of a server apart. Raft counts a vote and a copy of the log for each server, so of two processes with one
// identity, such as a copied data directory or a cloned machine makes them, only one may count.
type Instances interface {
	// Follows reports whether a process is the one that this node follows as a server. It does not wait.
	Follows(id raft.ServerID, instance ids.Instance) bool
	// Follow finds out whether this node can follow a process, which says that it is reached at an address, and follows it then. It may ask
	// other servers. The error is why the process does not count.
	Follow(id raft.ServerID, at raft.ServerAddress, instance ids.Instance) error
}

// MaxStarts bounds the starts that a data directory keeps. It keeps all of the newest: a server that is far behind may know an early one
// only, and has to follow the present one to learn of those between.
const MaxStarts = 1000

// Instance is the number of this process. It is drawn when raft starts.
func (d *Directory) Instance() ids.Instance {
	if len(d.Starts) == 0 {
		return 0
	}
	return d.Starts[len(d.Starts)-1]
}

// Before returns the instances of earlier processes of this directory.
func (d *Directory) Before() []ids.Instance { return d.Starts[:max(len(d.Starts)-1, 0)] }

// Continues reports whether a process of this directory has, or had, an instance. A directory that has had very many may have forgotten it.
func (d *Directory) Continues(instance ids.Instance) bool {
	return slices.Contains(d.Starts, instance) || len(d.Starts) >= MaxStarts
}

// drawInstance draws the number of this process and returns an identity that has it.
func (d *Directory) drawInstance() Identity {
	next := d.Identity
	kept := d.Starts[max(len(d.Starts)-(MaxStarts-1), 0):]
	next.Starts = append(slices.Clone(kept), newInstance())
	return next
}

func newInstance() ids.Instance {
	var random [8]byte
	for {
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		if instance := ids.Instance(binary.LittleEndian.Uint64(random[:])); instance != 0 {
			return instance
		}
	}
}

// startInstance draws the number of this process, and notes it before anything is said under it: the next process of the directory
// proves by it that it continues this one.
func (d *Directory) startInstance(persist func(func() error) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.drawInstance()
	if err := persist(func() error { return next.save(d.Path) }); err != nil {
		return fmt.Errorf("note the start of this process: %w", err)
	}
	d.Identity = next
	return nil
}
