package cluster

import (
	"context"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

const (
	hintTime  = rpc.AttemptTimeout / 4 // for the other servers to answer
	hintLasts = time.Second
)

// leaderHint finds a server with contact to the leader, for a node without: only the link to the leader
// may be broken. That server names the leader to callers, and forwards for those that cannot reach it.
type leaderHint struct {
	members *members
	peers   *rpc.Peers

	mu      sync.Mutex
	found   time.Duration // monotonic time
	address string        // of the server; empty: none was found
	asking  chan struct{} // closed when the servers have answered; nil: no search
}

// last returns the server found a moment ago, or "".
func (h *leaderHint) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.address != "" && monotonic()-h.found < hintLasts {
		return h.address
	}
	return ""
}

// find asks the other voters and returns the first one that knows a leader, or "".
func (h *leaderHint) find() string {
	h.mu.Lock()
	asking := h.asking
	if asking == nil {
		asking = make(chan struct{})
		h.asking = asking
		go h.ask()
	}
	h.mu.Unlock()
	<-asking
	return h.last()
}

func (h *leaderHint) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), hintTime)
	defer cancel()
	voters := h.members.voters()
	knows := make(chan string, len(voters))
	for _, voter := range voters {
		if voter.GetId() == h.members.dir.ID || voter.GetAddress() == "" {
			knows <- ""
			continue
		}
		go func() {
			status, err := h.peers.Node(voter.GetAddress()).Status(ctx, new(clusterpb.StatusRequest))
			if err != nil || status.GetLeaderId() == "" || status.GetLeaderId() == h.members.dir.ID || status.GetCluster() != h.members.dir.ClusterID() {
				knows <- ""
				return
			}
			knows <- voter.GetAddress()
		}()
	}
	address := ""
	for range voters {
		if address = <-knows; address != "" {
			break
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.asking)
	h.asking, h.address, h.found = nil, address, monotonic()
}
