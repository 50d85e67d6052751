package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// instances tracks which process of each server this node follows. Two processes can have one identity: a
// data directory was copied, or a virtual machine was cloned or resumed after its clone started. Raft
// would count the votes and log copies of both as those of one server, so entries could be lost and two
// leaders elected.
//
// Each start of a server draws an instance number. This node follows another instance of a server only
// under two conditions:
//
//   - The data directory of the new process was that of the followed process
//     (consensus.Directory.Before). A copy taken earlier lacks the promises made since.
//   - The followed process is silent: it answers neither this node nor any other server. A process at the
//     recorded address needs no such check, so a restart in place takes one probe.
//
// A server far behind knows an early instance. So a data directory remembers many of its processes.
//
// The leader records the followed instance in the log (storepb.Member). The record counts on all servers.
// A process that learns of another one in its place ends.
//
// Limits: silence is no proof. If the old process is cut off from all servers, two processes run until
// one hears of the other. And if a server must be followed before any leader can be elected, two servers
// may each follow another process of a third one, unless they reach each other's.
type instances struct {
	ctx    context.Context // ends when the node is closed
	dir    *consensus.Directory
	dial   func(address string) *rpc.Client
	logger *slog.Logger
	// replaced ends this process: the cluster follows another one.
	replaced func(error)
	// conflict is called for each refused process.
	conflict func(*conflictError)

	running chan struct{} // closed once the next three are set
	raft    *consensus.Raft
	members *members
	peers   *rpc.Peers

	mu        sync.Mutex
	followed  map[raft.ServerID]followed
	described map[ids.Instance]*clusterpb.Process // descriptions that processes have sent of themselves
	checks    map[checkKey]*instanceCheck
}

// followed is the process that counts as a server.
type followed struct {
	instance ids.Instance
	at       raft.ServerAddress // its address
	before   []ids.Instance     // known earlier processes of its data directory
}

// instanceCheck finds out whether to follow a process. Concurrent requests share it.
type instanceCheck struct {
	done chan struct{}
	err  error         // valid once done is closed
	over time.Duration // end of the error's validity, on the monotonic clock
}

type checkKey struct {
	id       raft.ServerID
	at       raft.ServerAddress
	instance ids.Instance
}

// Limits of checks.
const (
	instanceTimeout = 4 * time.Second        // of a check
	sightTimeout    = time.Second            // without an answer, until a process counts as dead
	refusedTime     = 500 * time.Millisecond // for which a refusal is remembered
	maxChecks       = 100
	maxDescribed    = 1000 // remembered descriptions
)

func newInstances(ctx context.Context, dir *consensus.Directory, dial func(string) *rpc.Client, logger *slog.Logger) *instances {
	return &instances{
		ctx: ctx, dir: dir, dial: dial, logger: logger, running: make(chan struct{}), followed: make(map[raft.ServerID]followed),
		described: make(map[ids.Instance]*clusterpb.Process), checks: make(map[checkKey]*instanceCheck),
	}
}

// run sets the rest. Until then checks wait.
func (i *instances) run(members *members, peers *rpc.Peers) {
	i.raft, i.members, i.peers = members.raft, members, peers
	close(i.running)
	i.raft.FSM.OnMember(i.recorded)
}

func (i *instances) isRunning() bool {
	select {
	case <-i.running:
		return true
	default:
		return false
	}
}

// own describes this process.
func (i *instances) own() *clusterpb.Process {
	host, _ := os.Hostname()
	return processOf(i.dir.Instance(), i.dir.Before(), host)
}

func processOf(instance ids.Instance, before []ids.Instance, host string) *clusterpb.Process {
	process := &clusterpb.Process{Instance: uint64(instance), Host: host}
	for _, b := range before {
		process.Before = append(process.Before, uint64(b))
	}
	return process
}

// describe records a process's description of itself, for processes that this node cannot ask.
func (i *instances) describe(p *clusterpb.Process) {
	instance := ids.Instance(p.GetInstance())
	if instance == 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if p.GetHost() == "" && i.described[instance] != nil {
		return
	}
	if len(i.described) >= maxDescribed {
		clear(i.described)
	}
	i.described[instance] = p
}

func predecessors(p *clusterpb.Process) []ids.Instance {
	before := make([]ids.Instance, len(p.GetBefore()))
	for n, b := range p.GetBefore() {
		before[n] = ids.Instance(b)
	}
	return before
}

// recorded follows the instance in the log. The entry may be older than this node's knowledge.
func (i *instances) recorded(m *storepb.Member) {
	instance := ids.Instance(m.GetInstance())
	if instance == 0 {
		return
	}
	if m.GetId() == i.dir.ID {
		if !i.dir.Continues(instance) {
			i.replaced(fmt.Errorf("%w (instance %x)", errReplaced, instance))
		}
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.followed[raft.ServerID(m.GetId())]
	if known.instance == instance || slices.Contains(known.before, instance) {
		return
	}
	i.followed[raft.ServerID(m.GetId())] = followed{instance: instance, at: raft.ServerAddress(m.GetAddress()), before: predecessors(i.described[instance])}
}

var errReplaced = errors.New("the cluster follows another process as this server: its data directory or its machine was copied. " +
	"This process has ended; start this server again only with an empty data directory, as a new member")

func (i *instances) get(id raft.ServerID) (f followed, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f, known = i.followed[id]
	return f, known
}

// Follows is part of consensus.Instances. Raft decides about an unknown server.
func (i *instances) Follows(id raft.ServerID, instance ids.Instance) bool {
	if f, known := i.get(id); known {
		return f.instance == instance
	}
	if string(id) == i.dir.ID {
		return instance == i.dir.Instance()
	}
	return i.isRunning() && i.raft.Server(string(id)) == nil
}

// Follow is part of consensus.Instances.
func (i *instances) Follow(id raft.ServerID, at raft.ServerAddress, instance ids.Instance) error {
	return i.follow(i.ctx, id, at, instance)
}

// follow is Follow, limited by ctx.
func (i *instances) follow(ctx context.Context, id raft.ServerID, at raft.ServerAddress, instance ids.Instance) error {
	if i.Follows(id, instance) {
		return nil
	}
	trial := i.startCheck(checkKey{id, at, instance})
	select {
	case <-trial.done:
		return trial.err
	case <-ctx.Done():
		return fmt.Errorf("whether its process counts is not known yet: %w", ctx.Err())
	}
}

// follows is Follows; it also starts a check of an unknown process.
func (i *instances) follows(id, at string, instance uint64) bool {
	if i.Follows(raft.ServerID(id), ids.Instance(instance)) {
		return true
	}
	i.startCheck(checkKey{raft.ServerID(id), raft.ServerAddress(at), ids.Instance(instance)})
	return false
}

// startCheck starts a check, or returns one under way or just failed.
func (i *instances) startCheck(key checkKey) *instanceCheck {
	i.mu.Lock()
	defer i.mu.Unlock()
	t := i.checks[key]
	if t != nil && (t.over == 0 || monotonic() < t.over) {
		return t
	}
	t = &instanceCheck{done: make(chan struct{})}
	if len(i.checks) >= maxChecks {
		clear(i.checks)
	}
	i.checks[key] = t
	go func() {
		ctx, cancel := context.WithTimeout(i.ctx, instanceTimeout)
		defer cancel()
		err := i.evaluate(ctx, key)
		i.mu.Lock()
		t.err, t.over = err, monotonic()+refusedTime
		if err == nil && i.checks[key] == t {
			delete(i.checks, key)
		}
		close(t.done)
		i.mu.Unlock()
		if refused := new(conflictError); errors.As(err, &refused) {
			i.conflict(refused)
		}
	}()
	return t
}

// evaluate follows a process if it can.
func (i *instances) evaluate(ctx context.Context, key checkKey) error {
	select {
	case <-i.running:
	case <-ctx.Done():
		return ctx.Err()
	}
	base, known := i.get(key.id)
	switch {
	case string(key.id) == i.dir.ID:
		return i.conflictWith(key, sighting{i.dir.Address, i.own()}, i.look(ctx, key.id, []string{string(key.at)}))
	case !known && key.instance == 0:
		return nil // an old process without an instance, and none is followed
	case key.instance == 0:
		return errors.New("it does not say which process it is")
	case slices.Contains(base.before, key.instance):
		return i.conflictWith(key, sighting{string(base.at), processOf(base.instance, nil, "")}, nil)
	}
	home := i.recordedAddresses(key.id)
	asked := append([]string{string(key.at), string(base.at), i.members.address(string(key.id))}, home...)
	seen := i.look(ctx, key.id, asked)
	isHome := false
	for _, s := range seen {
		if s.instance() == key.instance {
			i.describe(s.process)
			isHome = isHome || slices.Contains(home, s.at)
		}
	}
	i.mu.Lock()
	said := i.described[key.instance]
	i.mu.Unlock()
	before := predecessors(said)
	if known && said == nil {
		return fmt.Errorf("the process that says to be %s at %s does not answer there", key.id, key.at)
	}
	if known && !continues(before, base.instance) {
		return i.conflictWith(key, sighting{string(base.at), processOf(base.instance, nil, "")}, seen)
	}
	if !isHome {
		seen = append(seen, i.askOthers(ctx, key.id)...)
	}
	for _, s := range seen {
		if s.instance() != key.instance && (!isHome || s.instance() == base.instance) {
			return i.conflictWith(key, s, seen)
		}
	}
	return i.take(key, base, before)
}

// continues reports whether a data directory with these earlier processes was that of an instance. A very
// long list may have lost it.
func continues(before []ids.Instance, instance ids.Instance) bool {
	return slices.Contains(before, instance) || len(before) >= consensus.MaxStarts-1
}

// take follows a process in place of another one, unless that changed meanwhile.
func (i *instances) take(key checkKey, base followed, before []ids.Instance) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch now := i.followed[key.id].instance; now {
	case key.instance:
	case base.instance:
		i.followed[key.id] = followed{instance: key.instance, at: key.at, before: before}
		i.logger.Debug("another process of a server is followed", "id", key.id, "at", key.at, "instance", fmt.Sprintf("%x", key.instance))
	default:
		return errors.New("another process of that server was followed meanwhile")
	}
	return nil
}

// recordedAddresses returns the addresses that the cluster has recorded.
func (i *instances) recordedAddresses(id raft.ServerID) (addresses []string) {
	if server := i.raft.Server(string(id)); server != nil {
		addresses = append(addresses, string(server.Address))
	}
	if address := i.members.get(string(id)).GetAddress(); address != "" {
		addresses = append(addresses, address)
	}
	return addresses
}

// sighting is a process of a server that answered.
type sighting struct {
	at      string // empty: another server has reached it
	process *clusterpb.Process
}

func (s sighting) instance() ids.Instance { return ids.Instance(s.process.GetInstance()) }

func (s sighting) String() string {
	at := "at " + cmp.Or(s.at, "an address that is not known")
	if host := s.process.GetHost(); host != "" {
		at += " on host " + host
	}
	return at
}

// look asks at addresses for the processes of a server.
func (i *instances) look(ctx context.Context, id raft.ServerID, addresses []string) (seen []sighting) {
	slices.Sort(addresses)
	return i.ask(slices.Compact(addresses), func(address string) *sighting {
		ctx, cancel := context.WithTimeout(ctx, sightTimeout)
		defer cancel()
		node := i.dial(address) // a new connection: the kept one may be that of an ended process
		defer node.Close()
		reply, err := node.Probe(ctx, &clusterpb.ProbeRequest{Process: true})
		if err != nil || reply.GetId() != string(id) || reply.GetCluster() != i.dir.ClusterID() {
			return nil
		}
		return &sighting{address, reply.GetProcess()}
	})
}

// askOthers asks the other servers for the process they reach: only the link to this node may be cut.
func (i *instances) askOthers(ctx context.Context, id raft.ServerID) (seen []sighting) {
	var addresses []string
	for _, server := range i.raft.Servers() {
		if server.ID != id && string(server.ID) != i.dir.ID {
			addresses = append(addresses, i.members.address(string(server.ID)))
		}
	}
	return i.ask(addresses, func(address string) *sighting {
		ctx, cancel := context.WithTimeout(ctx, sightTimeout+sightTimeout/2)
		defer cancel()
		reply, err := i.peers.Node(address).Status(ctx, &clusterpb.StatusRequest{Reached: string(id)})
		if err != nil || reply.GetId() != string(id) || reply.GetInstance() == 0 {
			return nil
		}
		return &sighting{"", &clusterpb.Process{Instance: reply.GetInstance()}}
	})
}

func (i *instances) ask(addresses []string, ask func(string) *sighting) (seen []sighting) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, address := range addresses {
		if address == "" {
			continue
		}
		asking.Go(func() {
			if s := ask(address); s != nil {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, *s)
			}
		})
	}
	asking.Wait()
	return seen
}

// conflictError says why a process does not count: another one of the same server is followed or answers.
type conflictError struct {
	id, name string
	follows  ids.Instance
	refused  sighting
	other    sighting
}

func (i *instances) conflictWith(key checkKey, other sighting, seen []sighting) error {
	if other.at == "" { // another server has reached it
		base, _ := i.get(key.id)
		other.at = string(base.at)
	}
	e := &conflictError{
		id: string(key.id), name: i.members.get(string(key.id)).GetName(), follows: other.instance(), other: other,
		refused: sighting{string(key.at), processOf(key.instance, nil, "")},
	}
	i.mu.Lock()
	if said := i.described[key.instance]; said != nil {
		e.refused.process = said
	}
	i.mu.Unlock()
	for _, s := range seen {
		switch s.instance() {
		case key.instance:
			e.refused = s
		case e.other.instance():
			if s.at != "" {
				e.other = s
			}
		}
	}
	return e
}

// Error says what is wrong, and what to do.
func (e *conflictError) Error() string {
	return fmt.Sprintf("two processes use the identity of the server %s: one %s, which the cluster follows, and one %s, which is refused. One of "+
		"them runs on a copy of the other's data directory or machine: end the process that is refused, and start it again only with an "+
		"empty data directory, as a new member", e.name, e.other, e.refused)
}
