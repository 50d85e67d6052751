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

// moves is how members are followed to other addresses: who is met elsewhere is remembered by each, and the leader writes it down.
type moves struct {
	raft    *consensus.Raft
	members *members
	caller  *caller
	logger  *slog.Logger
}

// meet remembers where a server is that has another address now, also if this node does not lead: it may have to, or to vote for it,
// before that can be written down.
func (m *moves) meet(ctx context.Context, member *storepb.Member) {
	known := m.raft.Server(member.GetId())
	address := raft.ServerAddress(member.GetAddress())
	if known == nil || known.Address == address || member.GetId() == m.members.dir.ID || m.whereIs(*known) == address {
		return
	}
	if err := m.caller.callBack(ctx, member); err != nil {
		m.logger.Warn("a member is not reached where it says to be now", "name", member.GetName(), "error", err)
		return
	}
	m.logger.Info("a member has another address", "name", member.GetName(), "address", address, "before", known.Address)
	m.members.addressBook.Meet(*known, address)
}

// whereIs is where a server was met last, or where the configuration has it.
func (m *moves) whereIs(server raft.Server) raft.ServerAddress {
	if string(server.ID) == m.members.dir.ID {
		return raft.ServerAddress(m.members.dir.Address)
	}
	return m.members.addressBook.Of(server.ID, server.Address)
}

// holder is another server that has an address in the configuration, which cannot have two of them; nil: there is none.
func (m *moves) holder(address raft.ServerAddress, but raft.ServerID) *raft.Server {
	for _, server := range m.raft.Servers() {
		if server.Address == address && server.ID != but {
			return &server
		}
	}
	return nil
}

// inTheWay is why a server cannot have an address, or nothing: another one is there, as far as is known.
func (m *moves) inTheWay(address raft.ServerAddress, but raft.ServerID) string {
	holder := m.holder(address, but)
	if holder == nil || m.whereIs(*holder) != address {
		return ""
	}
	return fmt.Sprintf("the address %s is still that of the member %s: start that with its new one first, or remove it",
		address, m.members.get(string(holder.ID)).GetName())
}

// writeDown has raft's configuration follow a server, which keeps its vote or has none. Whoever had the address before and is elsewhere
// now loses it, and gets its own next: servers may have changed places. It is called by who has the turn.
func (m *moves) writeDown(ctx context.Context, id string, to raft.ServerAddress) error {
	known := m.raft.Server(id)
	if known == nil || known.Address == to {
		return nil
	}
	if inTheWay := m.inTheWay(to, known.ID); inTheWay != "" {
		return errors.New(inTheWay)
	}
	if holder := m.holder(to, known.ID); holder != nil {
		at := m.whereIs(*holder)
		holder.Address = unknownAddress(holder.ID)
		m.members.addressBook.Meet(*holder, at)
		if err := m.setAddress(ctx, *holder); err != nil {
			return err
		}
	}
	m.logger.Info("a member's new address is written down", "id", id, "address", to, "before", known.Address)
	known.Address = to
	return m.setAddress(ctx, *known)
}

func (m *moves) setAddress(ctx context.Context, server raft.Server) error {
	if server.Suffrage == raft.Voter {
		return m.raft.GiveVote(ctx, server.ID, server.Address, configChangeTimeout)
	}
	return consensus.Await(ctx, m.raft.AddNonvoter(server.ID, server.Address, 0, configChangeTimeout))
}

// unknownAddress is what the configuration has of a server between two addresses. Nothing can be dialed there.
func unknownAddress(id raft.ServerID) raft.ServerAddress { return "unknown-" + raft.ServerAddress(id) }
