package rpc

import (
	"context"
	"slices"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
)

// Pauses before a router retries the direct way to a server. The first retry is immediate, because the server
// may only have been slow. If calls fail again after a successful retry, the pauses grow.
const (
	firstRetry   = time.Second
	longestRetry = 30 * time.Second
	stableAfter  = time.Minute // after which an outage starts with an immediate retry again
)

// detours are a router's ways to an unreachable leader. The caller holds lock.
type detours struct {
	lock    sync.Locker // of the router
	report  func(leader, via string)
	via     Node             // forwards; nil: none
	leader  Node             // target of via
	left    int              // servers which stopped forwarding, since one did
	outages map[Node]*outage // of servers which are, or were, unreachable
}

// outage is a period without contact to a server.
type outage struct {
	over     time.Time // its end; zero: not over
	pause    time.Duration
	retry    time.Time // time of the next direct attempt
	retrying bool
}

func newDetours(lock sync.Locker, report func(leader, via string)) *detours {
	return &detours{lock: lock, report: report, outages: make(map[Node]*outage)}
}

// isOut reports whether a server is unreachable, and retries it from time to time.
func (d *detours) isOut(node Node) bool {
	o := d.outages[node]
	if o == nil || !o.over.IsZero() {
		return false
	}
	d.tryDirectly(node, o)
	return true
}

// begin begins an outage.
func (d *detours) begin(node Node, now time.Time) {
	o := d.outages[node]
	switch {
	case o == nil || !o.over.IsZero() && now.Sub(o.over) > stableAfter:
		d.outages[node] = &outage{retry: now}
	case !o.over.IsZero():
		o.over, o.pause = time.Time{}, min(max(2*o.pause, firstRetry), longestRetry)
		o.retry = now.Add(o.pause)
	}
}

// reached ends an outage.
func (d *detours) reached(node Node) {
	o := d.outages[node]
	if o == nil || !o.over.IsZero() {
		return
	}
	o.over = time.Now()
	if d.via != nil && d.leader == node {
		d.via = nil
		d.report(serverAddress(node), "")
	}
}

// leave gives up a server which does not forward.
func (d *detours) leave(via Node) {
	if d.via == via {
		d.via = nil
		d.left++
	}
}

// to returns a server to forward to a leader; nil: the leader is reachable, or there is no such server.
func (d *detours) to(leader Node, servers func() []Node) Node {
	if !d.isOut(leader) {
		return nil
	}
	candidates := d.forwarders(leader, servers())
	if len(candidates) == 0 {
		return nil
	}
	if !slices.Contains(candidates, d.via) {
		d.via = candidates[d.left%len(candidates)]
		d.report(serverAddress(leader), serverAddress(d.via))
	}
	d.leader = leader
	return d.via
}

// forwarders returns the servers which may forward to a leader.
func (d *detours) forwarders(leader Node, servers []Node) []Node {
	return slices.DeleteFunc(servers, func(node Node) bool { return node == leader || d.isOut(node) })
}

// tryDirectly probes an unreachable server if a retry is due. Any reply ends the outage.
func (d *detours) tryDirectly(node Node, o *outage) {
	if o.retrying || time.Now().Before(o.retry) {
		return
	}
	o.retrying = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), ProbeTimeout)
		defer cancel()
		_, err := node.Probe(ctx, new(clusterpb.ProbeRequest))
		d.lock.Lock()
		defer d.lock.Unlock()
		o.retrying, o.retry = false, time.Now().Add(firstRetry)
		if err == nil || isFinal(err) { // a refusal is a reply
			d.reached(node)
		}
	}()
}

// serverAddress returns "" for a node of this process.
func serverAddress(node Node) string {
	if remote, is := node.(*Client); is {
		return remote.calls.address
	}
	return ""
}
