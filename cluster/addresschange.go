package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hashicorp/raft"

	"lockfs/cluster/consensus"
	"lockfs/raftstore/storepb"
)

// addressBook follows members to new addresses: each server remembers the addresses it has learned, and
// the leader commits them.
type addressBook struct {
	raft    *consensus.Raft
	members *members
	dialer  *dialer
	logger  *slog.Logger
}

// learn remembers a server's new address, on any node: it may need the address to lead, or to vote,
// before the address can be committed.
func (b *addressBook) learn(ctx context.Context, member *storepb.Member) {
	known := b.raft.Server(member.GetId())
	address := raft.ServerAddress(member.GetAddress())
	if known == nil || known.Address == address || member.GetId() == b.members.dir.ID || b.lookup(*known) == address {
		return
	}
	if err := b.dialer.dialBack(ctx, member); err != nil {
		b.logger.Warn("a member is not reached where it says to be now", "name", member.GetName(), "error", err)
		return
	}
	b.logger.Info("a member has another address", "name", member.GetName(), "address", address, "before", known.Address)
	b.members.learnedAddresses.Learn(*known, address)
}

// lookup returns the learned address of a server, or the configured one.
func (b *addressBook) lookup(server raft.Server) raft.ServerAddress {
	if string(server.ID) == b.members.dir.ID {
		return raft.ServerAddress(b.members.dir.Address)
	}
	return b.members.learnedAddresses.Of(server.ID, server.Address)
}

// holder returns another server with the same address in the configuration; nil: none.
func (b *addressBook) holder(address raft.ServerAddress, but raft.ServerID) *raft.Server {
	for _, server := range b.raft.Servers() {
		if server.Address == address && server.ID != but {
			return &server
		}
	}
	return nil
}

// conflict returns why a server cannot have an address, or "": another server is known to be there.
func (b *addressBook) conflict(address raft.ServerAddress, but raft.ServerID) string {
	holder := b.holder(address, but)
	if holder == nil || b.lookup(*holder) != address {
		return ""
	}
	return fmt.Sprintf("the address %s is still that of the member %s: start that with its new one first, or remove it",
		address, b.members.get(string(holder.ID)).GetName())
}

// commit changes a server's address in raft's configuration; its vote stays. A previous holder of the
// address gets a placeholder first, and its own new address next: two servers may have exchanged
// addresses. The caller holds proposer.exclusive.
func (b *addressBook) commit(ctx context.Context, id string, to raft.ServerAddress) error {
	known := b.raft.Server(id)
	if known == nil || known.Address == to {
		return nil
	}
	if conflict := b.conflict(to, known.ID); conflict != "" {
		return errors.New(conflict)
	}
	if holder := b.holder(to, known.ID); holder != nil {
		at := b.lookup(*holder)
		holder.Address = placeholderAddress(holder.ID)
		b.members.learnedAddresses.Learn(*holder, at)
		if err := b.setAddress(ctx, *holder); err != nil {
			return err
		}
	}
	b.logger.Info("a member's new address is written down", "id", id, "address", to, "before", known.Address)
	known.Address = to
	return b.setAddress(ctx, *known)
}

func (b *addressBook) setAddress(ctx context.Context, server raft.Server) error {
	if server.Suffrage == raft.Voter {
		return b.raft.AddVoterAndWait(ctx, server.ID, server.Address, configChangeTimeout)
	}
	return consensus.Await(ctx, b.raft.AddNonvoter(server.ID, server.Address, 0, configChangeTimeout))
}

// placeholderAddress stands in the configuration between two addresses. It cannot be dialed.
func placeholderAddress(id raft.ServerID) raft.ServerAddress {
	return "unknown-" + raft.ServerAddress(id)
}
