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

// vigilInterval is how often a leader looks who answers.
const vigilInterval = 2 * time.Second

// vigil is how a leader knows which members do not answer, with a vote or without, and removes those that have been dead for too
// long. hashicorp/raft-autopilot does that too, but would do it beside what is here: it changes raft's configuration on its own,
// knows nothing of members' records and certificates, and counts a server as failed by when raft last heard it, also when the
// leader itself was stopped meanwhile.
type vigil struct {
	ctx        context.Context // ends when the node is closed
	after      time.Duration   // dead ones are removed; 0: never
	raft       *consensus.Raft
	members    *members
	leadership *leadership
	peers      *rpc.Peers
	changes    *changes
	expulsion  *expulsion
	instances  *instances
	logger     *slog.Logger

	mu       sync.Mutex
	looked   time.Duration            // monotonic time
	silence  map[string]time.Duration // by id; of those that did not answer when last asked
	detoured map[string]time.Duration // when a call of a server last came through another one, by its name
}

// detourLasts is for how long a server counts as alive after a call of it came through another server.
const detourLasts = time.Minute

// heardThroughAnother notes a call of a server that another one forwarded: that server runs, and only the way between it and this leader is
// broken. It is not removed as dead.
func (v *vigil) heardThroughAnother(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.detoured == nil {
		v.detoured = make(map[string]time.Duration)
	}
	v.detoured[name] = readClocks().mono
}

func (v *vigil) usesDetour(id string, now time.Duration) bool {
	if len(v.detoured) == 0 {
		return false
	}
	heard, known := v.detoured[v.members.get(id).GetName()]
	return known && now-heard < detourLasts
}

// keep looks for as long as this node leads in a term.
func (v *vigil) keep(term ids.Term) {
	v.begin(readClocks().mono)
	tick := time.NewTicker(vigilInterval)
	defer tick.Stop()
	for term != 0 && v.leadership.term() == term {
		select {
		case <-tick.C:
		case <-v.ctx.Done():
			return
		}
		answered, able := v.ask()
		dead := v.note(readClocks().mono, answered)
		if dead != "" && v.leadership.term() == term {
			v.remove(dead, able)
		}
	}
}

func (v *vigil) begin(now time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.looked, v.silence = now, make(map[string]time.Duration)
}

// ask answers of each server whether it is there, and whether it is able to take part in decisions.
func (v *vigil) ask() (answered, able map[string]bool) {
	var mu sync.Mutex
	answered, able = make(map[string]bool), make(map[string]bool)
	var asking sync.WaitGroup
	for _, server := range v.raft.Servers() {
		asking.Go(func() {
			there, full := true, v.raft.IsFull()
			if id := string(server.ID); id != v.members.dir.ID {
				there, full = v.hears(id)
			}
			mu.Lock()
			defer mu.Unlock()
			answered[string(server.ID)], able[string(server.ID)] = there, there && !full
		})
	}
	asking.Wait()
	return answered, able
}

// hears asks a member whether it is there, and whether its disk is full. A server of another cluster that has the member's id, because it was
// restored or recovered from the same directory, is not that member. One that has just joined may not know the cluster's id yet.
func (v *vigil) hears(id string) (there, full bool) {
	address := v.members.address(id)
	if address == "" {
		return false, false
	}
	ctx, cancel := context.WithTimeout(v.ctx, rpc.ProbeTimeout)
	defer cancel()
	reply, err := v.peers.Node(address).Probe(ctx, new(clusterpb.ProbeRequest))
	if err != nil || reply.GetId() != id || reply.GetCluster() != "" && reply.GetCluster() != v.members.dir.ClusterID() {
		return false, false
	}
	return v.instances.follows(id, address, reply.GetInstance()), reply.GetFull()
}

// note adds up for how long each has been silent, as far as a leader that was not stopped meanwhile would have looked. It answers
// one that has been for too long, or nothing.
func (v *vigil) note(now time.Duration, answered map[string]bool) (dead string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	passed := min(now-v.looked, 2*vigilInterval)
	v.looked = now
	silence := make(map[string]time.Duration)
	for id, there := range answered {
		if there {
			continue
		}
		silence[id] = v.silence[id] + passed
		if v.after > 0 && silence[id] >= v.after && !v.usesDetour(id, now) {
			dead = id
		}
	}
	v.silence = silence
	return dead
}

// silences are those of members that did not answer when last asked, if this node leads.
func (v *vigil) silences() (silences []*clusterpb.Silence) {
	if v.leadership.term() == 0 {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, duration := range v.silence {
		silences = append(silences, &clusterpb.Silence{Id: id, Duration: int64(duration)})
	}
	return silences
}

// remove takes a dead member out, unless what is left could not decide anything, or fewer than two voters were left.
func (v *vigil) remove(id string, able map[string]bool) {
	ctx, cancel := context.WithTimeout(v.ctx, changeTimeout)
	defer cancel()
	if !v.changes.turn.take(ctx) {
		return
	}
	defer v.changes.turn.pass()
	if known := v.raft.Server(id); known == nil || known.Suffrage == raft.Voter && !isSpare(id, v.raft.VoterIDs(), able) {
		return
	}
	if there, _ := v.hears(id); there { // it came back while others had their turn
		return
	}
	reason := fmt.Sprintf("%v (the leader %s had not heard it for %v)", errRemoved, v.members.dir.Name, v.after)
	v.logger.Warn("a dead member is removed", "name", v.members.get(id).GetName(), "id", id, "silent", v.after)
	by := &storepb.Caller{Host: v.members.dir.Name}
	if err := v.expulsion.expel(ctx, by, id, reason); err != nil && !errors.Is(err, errSettling) {
		v.logger.Warn("it is not removed yet", "id", id, "error", err)
	}
}

// isSpare tells whether two voters or more are left without one, and a majority of them is able to decide.
func isSpare(id string, voters []string, able map[string]bool) bool {
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
	return left >= 2 && isMajority(there, left)
}
