package cluster

import (
	"cmp"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/namespace"
)

// nodeCollector reads a node's metrics on demand. The cost is at most proportional to the number of
// voters, hosts and sessions, never to the number of locks.
type nodeCollector struct {
	node     *Node
	families map[string]family
}

var _ prometheus.Collector = (*nodeCollector)(nil)

type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// emit sends a value of a family of [nodeFamilies], with its labels.
type emit func(name string, value float64, labels ...string)

// nodeFamilies are the metrics of a node, without their common prefix.
var nodeFamilies = []struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
}{
	{name: "raft_term", help: "Raft's current term.", kind: prometheus.GaugeValue},
	{name: "raft_commit_index", help: "Index of the last committed log entry known to this server.", kind: prometheus.GaugeValue},
	{name: "raft_applied_index", help: "Index of the last applied log entry.", kind: prometheus.GaugeValue},
	{name: "raft_last_index", help: "Index of the last log entry.", kind: prometheus.GaugeValue},
	{name: "raft_voters", help: "Voters in the configuration.", kind: prometheus.GaugeValue},
	{name: "raft_is_leader", help: "1 while this node leads.", kind: prometheus.GaugeValue},
	{name: "raft_leader_known", help: "1 while a leader is known.", kind: prometheus.GaugeValue},
	{name: "raft_last_contact_seconds", help: "Time since the last message of the leader; 0 on the leader itself.", kind: prometheus.GaugeValue},
	{name: "raft_log_entries", help: "Entries in this server's log.", kind: prometheus.GaugeValue},
	{name: "raft_log_bytes", help: "Approximate size of the log's entries on disk.", kind: prometheus.GaugeValue},
	{name: "snapshot_index", help: "Index of this server's newest snapshot.", kind: prometheus.GaugeValue},
	{name: "snapshot_bytes", help: "Size of this server's newest snapshot.", kind: prometheus.GaugeValue},
	{name: "snapshot_timestamp_seconds", help: "Time of the newest snapshot, taken or received, in seconds since 1970.", kind: prometheus.GaugeValue},
	{name: "data_disk_bytes", help: "Size of the file system of the data directory.", kind: prometheus.GaugeValue},
	{name: "data_disk_free_bytes", help: "Free bytes for this process on the file system of the data directory.", kind: prometheus.GaugeValue},
	{name: "data_disk_inodes", help: "Inodes of the file system of the data directory; 0 if it has no count.", kind: prometheus.GaugeValue},
	{name: "data_disk_free_inodes", help: "Free inodes of the file system of the data directory.", kind: prometheus.GaugeValue},

	{name: "leader_voters_reached", help: "Voters with an answer to this leader within 10 s, itself included.", kind: prometheus.GaugeValue},
	{name: "leader_unconfirmed_seconds", help: "Age of the last request of this leader by which a quorum confirmed its leadership.", kind: prometheus.GaugeValue},
	{name: "voter_silent_seconds", help: "Age of the leader's last request answered by this voter.", kind: prometheus.GaugeValue, labels: []string{"voter"}},
	{name: "voter_clock_offset_seconds", help: "Offset of a voter's clock from cluster time; positive: ahead.", kind: prometheus.GaugeValue, labels: []string{"voter"}},
	{name: "session_silent_seconds_max", help: "Time since the last keepalive of the most silent mount.", kind: prometheus.GaugeValue},
	{name: "session_clock_offset_seconds_max", help: "Largest offset of a mount's clock from cluster time; positive: ahead.", kind: prometheus.GaugeValue},

	{name: "lease_holders", help: "Mounts with a lease (--leases).", kind: prometheus.GaugeValue},
	{name: "leased_inodes", help: "Files, directories and links under a lease of a mount.", kind: prometheus.GaugeValue},

	{name: "inodes", help: "Files, directories and links.", kind: prometheus.GaugeValue},
	{name: "inodes_limit", help: "Limit of inodes (--max-inodes).", kind: prometheus.GaugeValue},
	{name: "bytes", help: "Bytes used by files, directories and links, as counted for the limit.", kind: prometheus.GaugeValue},
	{name: "bytes_limit", help: "Limit of bytes (--max-bytes).", kind: prometheus.GaugeValue},
	{name: "alarms", help: "Alarms not cleared (lockfs alarm list).", kind: prometheus.GaugeValue},
	{name: "sessions", help: "Mounts in the whole cluster.", kind: prometheus.GaugeValue},
	{name: "hosts", help: "Hosts by state: mounted; silent, if their sessions have expired; left, if their mounts have ended.", kind: prometheus.GaugeValue, labels: []string{"state"}},
	{name: "locks", help: "Lock files by format and state: held or stale.", kind: prometheus.GaugeValue, labels: []string{"format", "state"}},
	{name: "locks_unreachable", help: "Locks of processes on hosts without a mount, which no host can check. They count as held too.", kind: prometheus.GaugeValue},
	{name: "lock_directories", help: "Empty directories created exclusively, under a name that says lock.", kind: prometheus.GaugeValue},
	{name: "kernel_locks", help: "Held flock and fcntl locks.", kind: prometheus.GaugeValue},
	{name: "kernel_lock_waiters", help: "Waiting requests for flock and fcntl locks.", kind: prometheus.GaugeValue},
	{name: "events_total", help: "Events of the whole cluster since its beginning, known to this server.", kind: prometheus.CounterValue, labels: []string{"event"}},
	{name: "refusals_total", help: "Refused removals and changes of locks, by reason, since this server started or received a snapshot.", kind: prometheus.CounterValue, labels: []string{"reason"}},
}

func newNodeCollector(n *Node) *nodeCollector {
	c := &nodeCollector{node: n, families: make(map[string]family, len(nodeFamilies))}
	for _, f := range nodeFamilies {
		c.families[f.name] = family{prometheus.NewDesc("lockfs_"+f.name, f.help, f.labels, nil), f.kind}
	}
	return c
}

// Describe is part of prometheus.Collector.
func (c *nodeCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range c.families {
		descs <- f.desc
	}
}

// Collect is part of prometheus.Collector.
func (c *nodeCollector) Collect(metrics chan<- prometheus.Metric) {
	emit := func(name string, value float64, labels ...string) {
		f := c.families[name]
		metrics <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
	}
	c.node.emitRaft(emit)
	c.node.emitDisk(emit)
	c.node.emitLeading(emit)
	for _, figure := range c.node.stateFigures() {
		emit(figure.name, figure.value, figure.labels...)
	}
}

func (n *Node) emitRaft(emit emit) {
	r := n.raft
	emit("raft_term", float64(r.CurrentTerm()))
	emit("raft_commit_index", float64(r.CommitIndex()))
	emit("raft_applied_index", float64(r.AppliedIndex()))
	emit("raft_last_index", float64(r.LastIndex()))
	emit("raft_voters", float64(len(r.VoterIDs())))
	_, leader := r.LeaderWithID()
	emit("raft_leader_known", oneIf(leader != ""))
	leads := r.State() == raft.Leader
	emit("raft_is_leader", oneIf(leads))
	if contact := r.LastContact(); leads {
		emit("raft_last_contact_seconds", 0)
	} else if !contact.IsZero() {
		emit("raft_last_contact_seconds", time.Since(contact).Seconds())
	}
	entries, bytes := r.LogSize()
	emit("raft_log_entries", float64(entries))
	emit("raft_log_bytes", float64(bytes))
	if newest := r.NewestSnapshot(); newest != nil {
		emit("snapshot_index", float64(newest.Index))
		emit("snapshot_bytes", float64(newest.Bytes))
		emit("snapshot_timestamp_seconds", float64(newest.Taken.UnixNano())/1e9)
	}
}

func (n *Node) emitDisk(emit emit) {
	var fs unix.Statfs_t
	if unix.Statfs(n.cfg.DataDir, &fs) != nil {
		return
	}
	emit("data_disk_bytes", float64(fs.Blocks)*float64(fs.Bsize))
	emit("data_disk_free_bytes", float64(fs.Bavail)*float64(fs.Bsize))
	emit("data_disk_inodes", float64(fs.Files))
	emit("data_disk_free_inodes", float64(fs.Ffree))
}

// emitLeading sends metrics known only to a leader.
func (n *Node) emitLeading(emit emit) {
	term := n.leadership.term()
	if term == 0 {
		return
	}
	var others []string
	names := map[string]string{}
	for _, voter := range n.members.voters() {
		names[voter.GetId()] = cmp.Or(voter.GetName(), voter.GetId())
		if voter.GetId() != n.dir.ID {
			others = append(others, voter.GetId())
		}
	}
	silences, reached := n.readIndex.lastContact.sinceContact(term, time.Now(), others), 1
	for voter, silent := range silences {
		emit("voter_silent_seconds", silent.Seconds(), names[voter])
		if silent <= reachedWithin {
			reached++
		}
	}
	emit("leader_voters_reached", float64(reached))
	emit("leader_unconfirmed_seconds", sinceQuorumContact(silences).Seconds())
	for voter, offset := range n.clock.offsets(n.dir.ID) {
		if name, isVoter := names[voter]; isVoter {
			emit("voter_clock_offset_seconds", offset.Seconds(), name)
		}
	}
	silent, offset := n.sessions.deadlines.worst(readClocks().mono)
	emit("session_silent_seconds_max", silent.Seconds())
	emit("session_clock_offset_seconds_max", offset.Seconds())
	holders, inodes := n.leaseGate.table.Held()
	emit("lease_holders", float64(holders))
	emit("leased_inodes", float64(inodes))
}

// figure is a value of a family.
type figure struct {
	name   string
	value  float64
	labels []string
}

// stateFigures returns the metrics of the state at one moment. Sending them could block, and waits until
// the state is unlocked.
func (n *Node) stateFigures() (figures []figure) {
	add := func(name string, value float64, labels ...string) {
		figures = append(figures, figure{name, value, labels})
	}
	n.fsm.View(func(ns *namespace.Namespace) {
		usage, hosts := ns.Usage(), ns.HostCounts()
		add("inodes", float64(ns.Inodes()))
		add("inodes_limit", float64(usage.GetMaxInodes()))
		add("bytes", float64(usage.GetBytes()))
		add("bytes_limit", float64(usage.GetMaxBytes()))
		add("alarms", float64(len(ns.Alarms())))
		add("sessions", float64(ns.Sessions()))
		add("hosts", float64(hosts.Mounted), "mounted")
		add("hosts", float64(hosts.Silent), "silent")
		add("hosts", float64(hosts.Left), "left")
		add("locks_unreachable", float64(hosts.Unreachable))
		add("lock_directories", float64(ns.LockDirectories()))
		ns.LockCounts(func(format lockfact.Format, stale bool, count int) {
			state := lockfact.Held
			if stale {
				state = lockfact.Stale
			}
			add("locks", float64(count), format.String(), string(state))
		})
		held, waiting := ns.KernelLocks()
		add("kernel_locks", float64(held))
		add("kernel_lock_waiters", float64(waiting))
		ns.EventCounts(func(event string, count uint64) { add("events_total", float64(count), event) })
		ns.Refusals(func(reason namespace.Refusal, count uint64) { add("refusals_total", float64(count), string(reason)) })
	})
	return figures
}
