package consensus

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/raftstore"
)

// Servers returns the servers of raft's newest configuration, committed or not, which raft itself uses.
func (r *Raft) Servers() []raft.Server {
	return slices.Clone(r.GetConfiguration().Configuration().Servers) // raft's own slice
}

// NonvoterIDs returns the servers without a vote, including learners.
func (r *Raft) NonvoterIDs() []string {
	var ids []string
	for _, server := range r.Servers() {
		if server.Suffrage != raft.Voter {
			ids = append(ids, string(server.ID))
		}
	}
	return ids
}

// Server returns nil for an id outside raft's newest configuration.
func (r *Raft) Server(id string) *raft.Server {
	for _, server := range r.Servers() {
		if string(server.ID) == id {
			return &server
		}
	}
	return nil
}

// VoterIDs returns the voters of raft's newest configuration.
func (r *Raft) VoterIDs() []string {
	var ids []string
	for _, server := range r.Servers() {
		if server.Suffrage == raft.Voter {
			ids = append(ids, string(server.ID))
		}
	}
	return ids
}

// VotersNumber returns a hash of the voters and their addresses; never 0.
func (r *Raft) VotersNumber() uint64 {
	hash := fnv.New64a()
	for _, server := range r.Servers() {
		if server.Suffrage == raft.Voter {
			_, _ = hash.Write([]byte(string(server.ID) + "\x00" + string(server.Address) + "\x00"))
		}
	}
	return max(hash.Sum64(), 1)
}

// Await waits for a change of the configuration, or another of raft's futures, and sorts its errors like
// those of a command (raftstore.SortRaftError). A retry is safe: a change made already is made again with
// the same effect.
func Await(ctx context.Context, future raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- future.Error() }()
	select {
	case err := <-done:
		if err != nil {
			return raftstore.SortRaftError(err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", raftstore.ErrUnknown, ctx.Err())
	}
}

// AddVoterAndWait makes a server a voter at an address, and waits for the commit. Its errors are those of
// Await. timeout limits the wait for a place in raft's queue.
//
// It adds another entry after the change. Raft sends the change before it counts the server's progress,
// and ignores a reply in between. If the change needs that server, only a reply to a later entry commits
// it.
func (r *Raft) AddVoterAndWait(ctx context.Context, id raft.ServerID, address raft.ServerAddress, timeout time.Duration) error {
	change := r.AddVoter(id, address, 0, timeout)
	_ = r.Barrier(timeout)
	return Await(ctx, change)
}

// Identify returns nil if the server with that id answers at a raft address.
func (r *Raft) Identify(id raft.ServerID, address raft.ServerAddress) error {
	over, ok := r.Transport.(transport)
	if !ok {
		return errors.New("this node cannot call others")
	}
	return over.identify(id, address)
}
