package rpc

import (
	"context"
	"errors"
	"slices"
	"time"

	"lockfs/cluster/clusterpb"
)

// How long a router waits before it tries the direct way to a server again: at once after a first failure, since the server may only
// have been slow. If calls fail there again although a trial succeeded, it waits longer each time.
const (
	firstTrial   = time.Second
	longestTrial = 30 * time.Second
	trusted      = time.Minute // a server that was reachable for so long is tried at once again
)

// detours are the ways of a router to a leader that it cannot reach itself. The router's mutex protects them.
type detours struct {
	servers []Node           // that may forward, beside the router's entries
	met     []Node           // that were named as the leader, the newest last, for a router that was told of no others
	via     Node             // that forwarded last; nil: none did
	left    int              // how many servers did not forward, since one did
	outages map[Node]*outage // of servers that cannot be reached, or could not
}

// outage is a time in which a server cannot be reached.
type outage struct {
	over   time.Time // when it ended; zero: it goes on
	pause  time.Duration
	trial  time.Time // when to try the direct way
	trying bool
}

func newDetours() detours { return detours{outages: make(map[Node]*outage)} }

func (d *detours) isOut(node Node) bool {
	o := d.outages[node]
	return o != nil && o.over.IsZero()
}

// lost begins an outage.
func (d *detours) lost(node Node, now time.Time) {
	o := d.outages[node]
	switch {
	case o == nil || !o.over.IsZero() && now.Sub(o.over) > trusted:
		d.outages[node] = &outage{trial: now}
	case !o.over.IsZero():
		o.over, o.pause = time.Time{}, min(max(2*o.pause, firstTrial), longestTrial)
		o.trial = now.Add(o.pause)
	}
}

// reached ends an outage.
func (d *detours) reached(node Node) {
	if o := d.outages[node]; o != nil && o.over.IsZero() {
		o.over = time.Now()
	}
}

// leave gives up a server that does not forward.
func (d *detours) leave(via Node) {
	if d.via == via {
		d.via = nil
		d.left++
	}
}

// mostMet is how many servers are remembered that were named as the leader.
const mostMet = 8

// named notes a server that was named as the leader.
func (d *detours) named(leader Node) {
	if slices.Contains(d.met, leader) {
		return
	}
	d.met = append(d.met, leader)
	d.met = d.met[max(0, len(d.met)-mostMet):]
}

// A Guide is a node of this process that knows the addresses of the other servers. Those may have become servers of another cluster, which are
// to do nothing.
type Guide interface {
	Node
	Servers() []string
	ClusterID() string
}

// guide returns nil if there is none.
func (r *Router) guide() Guide {
	for _, near := range r.entry {
		if guide, is := near.(Guide); is {
			return guide
		}
	}
	return nil
}

// cluster is the id of the cluster that is to do what goes by a detour; empty: any.
func (r *Router) cluster() string {
	if guide := r.guide(); guide != nil {
		return guide.ClusterID()
	}
	return ""
}

// servers are all that the router knows besides a node of this process.
func (r *Router) servers() (all []Node) {
	add := func(nodes []Node) {
		for _, node := range nodes {
			if _, is := node.(*Remote); is && !slices.Contains(all, node) {
				all = append(all, node)
			}
		}
	}
	add(r.entry)
	if guide := r.guide(); guide != nil {
		add(r.peers.Nodes(guide.Servers()))
		return all
	}
	add(r.detours.servers)
	add(r.detours.met)
	return all
}

// nextEntry returns the next node to ask for the leader, if possible one that can be reached.
func (r *Router) nextEntry() Node {
	first := r.entry[r.turn%len(r.entry)]
	for range r.entry {
		node := r.entry[r.turn%len(r.entry)]
		if r.turn++; !r.isOut(node) {
			return node
		}
	}
	r.turn++ // all are out: each has its turn
	return first
}

// isOut reports whether a node cannot be reached, and sees to it that this is found out anew from time to time.
func (r *Router) isOut(node Node) bool {
	if !r.detours.isOut(node) {
		return false
	}
	r.tryDirectly(node)
	return true
}

// via returns a server that is to forward calls to the leader; nil: the leader can be reached, or there is no such server.
func (r *Router) via() Node {
	if r.leader == nil || !r.isOut(r.leader) {
		return nil
	}
	candidates := r.forwarders(r.leader)
	if len(candidates) == 0 {
		return nil
	}
	if !slices.Contains(candidates, r.detours.via) {
		r.detours.via = candidates[r.detours.left%len(candidates)]
		r.report(serverAddress(r.leader), serverAddress(r.detours.via))
	}
	return r.detours.via
}

// forwarders are the servers that may forward to a leader.
func (r *Router) forwarders(leader Node) []Node {
	return slices.DeleteFunc(r.servers(), func(node Node) bool { return node == leader || r.isOut(node) })
}

// answered notes that a node has answered.
func (r *Router) answered(a *attempt, reply Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detours.reached(a.node)
	if a.unreachable != nil && reply.GetOutcome() == clusterpb.Outcome_DONE {
		r.detours.left = 0
	}
}

// failed notes that a node has not answered, or not forwarded.
func (r *Router) failed(a *attempt, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.moved {
		return
	}
	if _, remote := a.node.(*Remote); remote && a.isLost(err) {
		r.detours.lost(a.node, time.Now())
	}
	if a.unreachable != nil {
		r.detours.leave(a.node)
		if r.leader == a.unreachable && r.detours.left > len(r.forwarders(r.leader)) { // perhaps there is another leader
			r.leader, r.detours.left = nil, 0
		}
		return
	}
	if r.leader == a.node && (!r.detours.isOut(a.node) || len(r.forwarders(a.node)) == 0) {
		r.leader = nil
	}
}

// isLost reports whether nothing came from the node although it had its whole time.
func (a *attempt) isLost(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) && time.Since(a.began) >= a.limit*3/4
}

// tryDirectly probes a server that could not be reached, if it is time for that, and ends its outage if anything comes from it.
func (r *Router) tryDirectly(node Node) {
	o := r.detours.outages[node]
	if o.trying || time.Now().Before(o.trial) {
		return
	}
	o.trying = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), ProbeTimeout)
		defer cancel()
		_, err := node.Probe(ctx, new(clusterpb.ProbeRequest))
		r.mu.Lock()
		defer r.mu.Unlock()
		o.trying, o.trial = false, time.Now().Add(firstTrial)
		if err != nil && !isFinal(err) { // a refusal is an answer
			return
		}
		r.detours.reached(node)
		if node == r.leader && r.detours.via != nil {
			r.detours.via = nil
			r.report(serverAddress(node), "")
		}
	}()
}

type attemptTimeKey struct{}

// WithAttemptTime has each attempt of a router take at most so long, if that is less than AttemptTimeout.
func WithAttemptTime(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, attemptTimeKey{}, limit)
}

func attemptTime(ctx context.Context) time.Duration {
	if limit, is := ctx.Value(attemptTimeKey{}).(time.Duration); is {
		return min(limit, AttemptTimeout)
	}
	return AttemptTimeout
}

// serverAddress returns "" for a node of this process.
func serverAddress(node Node) string {
	if remote, is := node.(*Remote); is {
		return remote.client.address
	}
	return ""
}
