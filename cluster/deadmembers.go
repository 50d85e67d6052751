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

// failureProbeInterval is how often a leader probes all members.
const failureProbeInterval = 2 * time.Second

// failureDetector tracks members that do not answer the leader's probes, voters or not, and removes those
// dead for too long. hashicorp/raft-autopilot would do that on its own: it knows neither member records
// nor certificates, and counts the pauses of the leader's process against the others.
type failureDetector struct {
	ctx         context.Context // ends when the node is closed
	removeAfter time.Duration   // a dead member is removed after this; 0: never
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
	unreachableFor map[string]time.Duration // by id, of members that did not answer the last probe
	forwardedAt    map[string]time.Duration // last call of a server through another one, by its name
}

// forwardedCallTTL is how long a server counts as alive after another server forwarded its call.
const forwardedCallTTL = time.Minute

// noteForwardedCall records a call that another server forwarded: its sender runs, and only the link to
// this leader is broken. It is not removed as dead.
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

// run probes all members for as long as this node leads in a term.
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

// probeAll returns which servers answer, and which of these can take part in decisions.
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

// probe reports whether a member answers, and whether its disk is full. A server of another cluster with
// the same id, made by a restore or recovery, does not count. A new member may not know the cluster's id
// yet.
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

// record adds up how long each member has not answered, without pauses of this process. It returns a
// member that is dead, or "".
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

// unreachable returns the members that did not answer the last probe, if this node leads.
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

// removeDead removes a dead member, unless fewer than two voters or no quorum would be left.
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
	if there, _ := d.probe(id); there { // it answers again
		return
	}
	reason := fmt.Sprintf("%v (no contact with the leader %s for %v)", errRemoved, d.members.dir.Name, d.removeAfter)
	d.logger.Warn("a dead member is removed", "name", d.members.get(id).GetName(), "id", id, "silent", d.removeAfter)
	by := &storepb.Caller{Host: d.members.dir.Name}
	if err := d.remover.remove(ctx, by, id, reason); err != nil && !errors.Is(err, errDraining) {
		d.logger.Warn("it is not removed yet", "id", id, "error", err)
	}
}

// isDispensable reports whether at least two voters are left without a member, and a majority of them can
// decide.
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
