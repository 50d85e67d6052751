package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// failureProbeInterval is how often a leader looks who answers.
const failureProbeInterval = 2 * time.Second

// failureDetector is how a leader knows which members do not answer, with a vote or without, and removes those that have been dead for too
// long. hashicorp/raft-autopilot does that too, but would do it beside what is here: it changes raft's configuration on its own,
// knows nothing of members' records and certificates, and counts a server as failed by when raft last heard it, also when the
// leader itself was stopped meanwhile.
type failureDetector struct {
	ctx         context.Context // ends when the node is closed
	removeAfter time.Duration   // dead ones are removed; 0: never
	raft        *consensus.Raft
	members     *members
	leadership  *leadership
	peers       *rpc.Peers
	proposer    *proposer
	remover     *remover
	instances   *instances
	logger      *slog.Logger

	mu             sync.Mutex
	lastRound      time.Duration            // monotonic time
	unreachableFor map[string]time.Duration // by id; of those that did not answer when last asked
	forwardedAt    map[string]time.Duration // when a call of a server last came through another one, by its name
}

// forwardedCallTTL is for how long a server counts as alive after a call of it came through another server.
const forwardedCallTTL = time.Minute

// noteForwardedCall notes a call of a server that another one forwarded: that server runs, and only the way between it and this leader is
// broken. It is not removed as dead.
func (d *failureDetector) noteForwardedCall(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forwardedAt == nil {
		d.forwardedAt = make(map[string]time.Duration)
	}
	d.forwardedAt[name] = readClocks().mono
}

func (d *failureDetector) usesDetour(id string, now time.Duration) bool {
	if len(d.forwardedAt) == 0 {
		return false
	}
	heard, known := d.forwardedAt[d.members.get(id).GetName()]
	return known && now-heard < forwardedCallTTL
}

// run looks for as long as this node leads in a term.
func (d *failureDetector) run(term ids.Term) {
	d.reset(readClocks().mono)
	tick := time.NewTicker(failureProbeInterval)
	defer tick.Stop()
	for term != 0 && d.leadership.term() == term {
		select {
		case <-tick.C:
		case <-d.ctx.Done():
			return
		}
		answered, able := d.probeAll()
		dead := d.record(readClocks().mono, answered)
		if dead != "" && d.leadership.term() == term {
			d.removeDead(dead, able)
		}
	}
}

func (d *failureDetector) reset(now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastRound, d.unreachableFor = now, make(map[string]time.Duration)
}

// probeAll answers of each server whether it is there, and whether it is able to take part in decisions.
func (d *failureDetector) probeAll() (answered, able map[string]bool) {
	var mu sync.Mutex
	answered, able = make(map[string]bool), make(map[string]bool)
	var asking sync.WaitGroup
	for _, server := range d.raft.Servers() {
		asking.Go(func() {
			there, full := true, d.raft.IsFull()
			if id := string(server.ID); id != d.members.dir.ID {
				there, full = d.probe(id)
			}
			mu.Lock()
			defer mu.Unlock()
			answered[string(server.ID)], able[string(server.ID)] = there, there && !full
		})
	}
	asking.Wait()
	return answered, able
}

// probe asks a member whether it is there, and whether its disk is full. A server of another cluster that has the member's id, because it was
// restored or recovered from the same directory, is not that member. One that has just joined may not know the cluster's id yet.
func (d *failureDetector) probe(id string) (there, full bool) {
	address := d.members.address(id)
	if address == "" {
		return false, false
	}
	ctx, cancel := context.WithTimeout(d.ctx, rpc.ProbeTimeout)
	defer cancel()
	reply, err := d.peers.Node(address).Probe(ctx, new(clusterpb.ProbeRequest))
	if err != nil || reply.GetId() != id || reply.GetCluster() != "" && reply.GetCluster() != d.members.dir.ClusterID() {
		return false, false
	}
	return d.instances.follows(id, address, reply.GetInstance()), reply.GetFull()
}

// record adds up for how long each has been silent, as far as a leader that was not stopped meanwhile would have looked. It answers
// one that has been for too long, or nothing.
func (d *failureDetector) record(now time.Duration, answered map[string]bool) (dead string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	passed := min(now-d.lastRound, 2*failureProbeInterval)
	d.lastRound = now
	silence := make(map[string]time.Duration)
	for id, there := range answered {
		if there {
			continue
		}
		silence[id] = d.unreachableFor[id] + passed
		if d.removeAfter > 0 && silence[id] >= d.removeAfter && !d.usesDetour(id, now) {
			dead = id
		}
	}
	d.unreachableFor = silence
	return dead
}

// unreachable are those of members that did not answer when last asked, if this node leads.
func (d *failureDetector) unreachable() (unreachable []*clusterpb.Silence) {
	if d.leadership.term() == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, duration := range d.unreachableFor {
		unreachable = append(unreachable, &clusterpb.Silence{Id: id, Duration: int64(duration)})
	}
	return unreachable
}

// removeDead takes a dead member out, unless what is left could not decide anything, or fewer than two voters were left.
func (d *failureDetector) removeDead(id string, able map[string]bool) {
	ctx, cancel := context.WithTimeout(d.ctx, changeTimeout)
	defer cancel()
	if !d.proposer.exclusive.Lock(ctx) {
		return
	}
	defer d.proposer.exclusive.Unlock()
	if known := d.raft.Server(id); known == nil || known.Suffrage == raft.Voter && !isDispensable(id, d.raft.VoterIDs(), able) {
		return
	}
	if there, _ := d.probe(id); there { // it came back while others had their turn
		return
	}
	reason := fmt.Sprintf("%v (the leader %s had not heard it for %v)", errRemoved, d.members.dir.Name, d.removeAfter)
	d.logger.Warn("a dead member is removed", "name", d.members.get(id).GetName(), "id", id, "silent", d.removeAfter)
	by := &storepb.Caller{Host: d.members.dir.Name}
	if err := d.remover.remove(ctx, by, id, reason); err != nil && !errors.Is(err, errDraining) {
		d.logger.Warn("it is not removed yet", "id", id, "error", err)
	}
}

// isDispensable tells whether two voters or more are left without one, and a majority of them is able to decide.
func isDispensable(id string, voters []string, able map[string]bool) bool {
	left, there := 0, 0
	for _, voter := range voters {
		if voter == id {
			continue
		}
		left++
		if able[voter] {
			there++
		}
	}
	return left >= 2 && isQuorum(there, left)
}
