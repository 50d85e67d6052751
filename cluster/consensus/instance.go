package consensus

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// Instances tells the processes of a server apart. Raft counts votes and copies of the log by server, so
// of two processes with one identity, such as copies of a data directory or machine, only one may count.
type Instances interface {
	// Follows reports whether this node follows the process as that server. It does not wait.
	Follows(id raft.ServerID, instance ids.Instance) bool
	// Follow finds out whether this node can follow a process at an address, and then follows it. It may
	// ask other servers. The error is the reason why the process does not count.
	Follow(id raft.ServerID, at raft.ServerAddress, instance ids.Instance) error
}

// MaxStarts limits the starts recorded in a data directory. All recent ones are kept: a server far behind
// may know only an early one, and needs the present process to learn the rest.
const MaxStarts = 1000

// Instance returns the number of this process, drawn when raft starts.
func (d *Directory) Instance() ids.Instance {
	if len(d.Starts) == 0 {
		return 0
	}
	return d.Starts[len(d.Starts)-1]
}

// Before returns the instances of earlier processes of this directory.
func (d *Directory) Before() []ids.Instance { return d.Starts[:max(len(d.Starts)-1, 0)] }

// Continues reports whether a process of this directory has, or had, an instance. A very long list may
// have lost it.
func (d *Directory) Continues(instance ids.Instance) bool {
	return slices.Contains(d.Starts, instance) || len(d.Starts) >= MaxStarts
}

// drawInstance returns an identity with a new instance.
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

// startInstance draws and saves the instance of this process before any message: the next process proves
// with it that it continues this one.
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
