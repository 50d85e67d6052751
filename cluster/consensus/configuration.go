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

// Servers answers those of raft's newest configuration, committed or not, as raft itself uses it.
func (r *Raft) Servers() []raft.Server {
	return slices.Clone(r.GetConfiguration().Configuration().Servers) // raft's own
}

// NonvoterIDs answers who has none, which may be on its way to one.
func (r *Raft) NonvoterIDs() []string {
	var ids []string
	for _, server := range r.Servers() {
		if server.Suffrage != raft.Voter {
			ids = append(ids, string(server.ID))
		}
	}
	return ids
}

// Server answers nil for an id that is not in raft's newest configuration.
func (r *Raft) Server(id string) *raft.Server {
	for _, server := range r.Servers() {
		if string(server.ID) == id {
			return &server
		}
	}
	return nil
}

// VoterIDs answers who has a vote in raft's newest configuration.
func (r *Raft) VoterIDs() []string {
	var ids []string
	for _, server := range r.Servers() {
		if server.Suffrage == raft.Voter {
			ids = append(ids, string(server.ID))
		}
	}
	return ids
}

// VotersNumber is another one once the voters are others, or one has another address, and not 0.
func (r *Raft) VotersNumber() uint64 {
	hash := fnv.New64a()
	for _, server := range r.Servers() {
		if server.Suffrage == raft.Voter {
			_, _ = hash.Write([]byte(string(server.ID) + "\x00" + string(server.Address) + "\x00"))
		}
	}
	return max(hash.Sum64(), 1)
}

// Await waits for a change of the configuration, or for another of raft's futures, and sorts its errors like those of a
// command (raftstore.SortRaftError). Asking again is safe: a change that was made already is made once more to the same effect.
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

// AddVoterAndWait makes a server a voter at an address, and waits until that is committed. Its errors are those of Await. timeout bounds the
// wait for a place in raft's queue.
//
// Another entry follows the change. Raft sends the change before it begins to count what the server has, and passes over an answer that
// comes between the two: if the change needs that server, it is not committed until the server answers to something later.
func (r *Raft) AddVoterAndWait(ctx context.Context, id raft.ServerID, address raft.ServerAddress, timeout time.Duration) error {
	change := r.AddVoter(id, address, 0, timeout)
	_ = r.Barrier(timeout)
	return Await(ctx, change)
}

// Identify asks at a raft address who is there, and is nil if it is the server with that id.
func (r *Raft) Identify(id raft.ServerID, address raft.ServerAddress) error {
	over, ok := r.Transport.(transport)
	if !ok {
		return errors.New("this node cannot call others")
	}
	return over.identify(id, address)
}
