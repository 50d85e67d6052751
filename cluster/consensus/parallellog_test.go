package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockfs/raftstore/ids"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stoppedDisk stores nothing until it is told how that ends.
type stoppedDisk struct {
	*raft.InmemStore
	end chan error
}

func (d stoppedDisk) StoreLogs(entries []*raft.Log) error {
	if err := <-d.end; err != nil {
		return err
	}
	return d.InmemStore.StoreLogs(entries)
}

// begins runs what must not have ended yet; the function it answers waits for the end.
func begins(t *testing.T, do func() error) (end func() error) {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	return func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(testWait):
			return errors.New("it does not end")
		}
	}
}

// TestEarlyEntriesHaveABoundInBytes: one that comes when there is too much in memory waits for the disk,
// and so learns that it has failed.
func TestEarlyEntriesHaveABoundInBytes(t *testing.T) {
	failure := errors.New("no disk")
	disk := stoppedDisk{raft.NewInmemStore(), make(chan error)}
	log := newParallelLog(disk)
	const each = 256 << 10
	index := uint64(0)
	next := func() []*raft.Log {
		index++
		return []*raft.Log{{Index: index, Term: 1, Data: make([]byte, each)}}
	}
	for range maxUnwrittenBytes / each {
		require.NoError(t, log.storeParallel(next()))
	}
	more := next()
	end := begins(t, func() error { return log.storeParallel(more) })
	disk.end <- failure
	require.ErrorIs(t, end(), failure)
	log.close()
}

// TestWhoStoresEntriesSaysSoBefore they can count as stored, whoever writes them.
func TestWhoStoresEntriesSaysSoBefore(t *testing.T) {
	disk := stoppedDisk{raft.NewInmemStore(), make(chan error)}
	log := newParallelLog(disk)
	told := make(chan struct{}, 1)
	log.onStore = func() { told <- struct{}{} }
	end := begins(t, func() error { return log.StoreLogs([]*raft.Log{{Index: 1, Term: 1}}) })
	<-told
	last, err := disk.LastIndex()
	require.NoError(t, err)
	require.Zero(t, last)
	disk.end <- nil
	require.NoError(t, end())
	log.close()
}

func TestEarlyEntries(t *testing.T) {
	entries := func(first, last uint64) (entries []*raft.Log) {
		for index := first; index <= last; index++ {
			entries = append(entries, &raft.Log{Index: index, Term: 1})
		}
		return entries
	}
	for name, failure := range map[string]error{"stored": nil, "lost": errors.New("no disk")} {
		t.Run(name, func(t *testing.T) {
			disk := stoppedDisk{raft.NewInmemStore(), make(chan error)}
			require.NoError(t, disk.InmemStore.StoreLogs(entries(1, 2)))
			log := newParallelLog(disk)
			votes, err := openVotes(filepath.Join(t.TempDir(), votesFile), false)
			require.NoError(t, err)
			votes.log = log
			require.NoError(t, log.storeParallel(entries(3, 4)))

			last, err := log.LastIndex()
			require.NoError(t, err)
			require.Equal(t, uint64(4), last)
			var entry raft.Log
			for index := uint64(1); index <= last; index++ {
				require.NoError(t, log.GetLog(index, &entry))
				require.Equal(t, index, entry.Index)
			}
			require.ErrorIs(t, log.GetLog(5, &entry), raft.ErrLogNotFound)
			require.Equal(t, []ids.Index{1, 2, 2, 2}, []ids.Index{log.committed(1), log.committed(2), log.committed(3), log.committed(9)})
			require.NoError(t, log.await(2))
			require.NoError(t, log.DeleteRange(1, 1))

			var done atomic.Int32
			var ends []func() error
			for _, do := range []func() error{
				func() error { return log.await(3) },
				func() error { return votes.SetUint64([]byte(keyCurrentTerm), 2) },
				func() error { return log.DeleteRange(4, 4) },
				func() error { return log.StoreLog(&raft.Log{Index: 5, Term: 1}) }, // nobody leads
			} {
				ends = append(ends, begins(t, func() error {
					err := do()
					done.Add(1)
					return err
				}))
			}
			require.Never(t, func() bool { return done.Load() > 0 }, 50*time.Millisecond, time.Millisecond)
			disk.end <- failure
			if failure == nil {
				disk.end <- nil // entry 5
			}
			for _, end := range ends {
				require.ErrorIs(t, end(), failure)
			}
			require.ErrorIs(t, log.storeParallel(entries(6, 6)), failure)
			if failure == nil {
				disk.end <- nil
			}
			log.close()
			require.NoError(t, votes.Close())
		})
	}
}

// countingFSM has applied so many entries.
type countingFSM struct {
	raft.ConfigurationStore
	applied int
}

func (c *countingFSM) Apply(*raft.Log) any {
	c.applied++
	return nil
}

func (c *countingFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, nil }

// TestNoSnapshotAfterAFailedWrite lets raft count entries as applied that the state machine never saw.
func TestNoSnapshotAfterAFailedWrite(t *testing.T) {
	disk := stoppedDisk{raft.NewInmemStore(), make(chan error, 1)}
	log := newParallelLog(disk)
	state := new(countingFSM)
	fsm := parallelFSM{state, log}
	_, err := fsm.Snapshot()
	require.NoError(t, err)
	failure := errors.New("no disk")
	require.NoError(t, log.storeParallel([]*raft.Log{{Index: 1, Term: 1}}))
	disk.end <- failure
	applied, _ := fsm.Apply(&raft.Log{Index: 1, Term: 1}).(error)
	require.ErrorIs(t, applied, failure)
	require.Zero(t, state.applied)
	_, err = fsm.Snapshot()
	require.ErrorIs(t, err, failure, "it would say that entry 1 is in it")
	log.close()
}

// TestPowerCuts has machines lose what is not on their disks, leaders above all, whose disks are slower
// than their followers'. No entry that was acknowledged is lost, and nowhere and never is another one
// applied in the place of one.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	const cuts = 25
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := newPoweredCluster(t, rand.New(rand.NewPCG(seed, 0)))
	for range 4 {
		go c.propose(t.Context())
	}
	for range cuts {
		c.awaitProgress(t)
		c.cutPower(t)
	}
	c.awaitProgress(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.wrong[:min(len(c.wrong), 5)])
	t.Logf("%d entries acknowledged", len(c.acked))
}

// poweredCluster is three nodes of raft whose machines can lose power. Commands are numbers.
type poweredCluster struct {
	random   *rand.Rand
	machines []*machine

	mu      sync.Mutex
	last    uint64
	applied map[uint64]uint64 // by index: the number that some node was the first to apply there
	acked   map[uint64]uint64 // by index
	wrong   []string
}

type machine struct {
	cluster  *poweredCluster
	id       raft.ServerID
	disk     *slowDisk
	votes    *mortalVotes
	network  *raft.InmemTransport
	log      *parallelLog
	incoming *appendGate
	raft     *raft.Raft
}

func newPoweredCluster(t *testing.T, random *rand.Rand) *poweredCluster {
	c := &poweredCluster{random: random, applied: make(map[uint64]uint64), acked: make(map[uint64]uint64)}
	var servers []raft.Server
	for i := range 3 {
		m := &machine{cluster: c, id: raft.ServerID(fmt.Sprint(i)), disk: newSlowDisk(), votes: &mortalVotes{InmemStore: raft.NewInmemStore()}}
		servers = append(servers, raft.Server{ID: m.id, Address: raft.ServerAddress(m.id)})
		c.machines = append(c.machines, m)
	}
	for _, m := range c.machines {
		snapshots := raft.NewInmemSnapshotStore()
		_, unused := raft.NewInmemTransport(raft.ServerAddress(m.id))
		first := raft.Configuration{Servers: servers}
		require.NoError(t, raft.BootstrapCluster(m.config(), m.disk, m.votes, snapshots, unused, first))
		m.start(t)
	}
	t.Cleanup(func() {
		for _, m := range c.machines {
			m.network.DisconnectAll()
			assert.NoError(t, m.raft.Shutdown().Error())
			m.incoming.close()
			m.log.close()
		}
	})
	return c
}

func (m *machine) config() *raft.Config {
	const timeout = 60 * time.Millisecond
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = m.id, raftLogger(quietLogger(), 0)
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = timeout, timeout, timeout
	config.CommitTimeout = 5 * time.Millisecond
	return config
}

// start is what a machine does when its power is back.
func (m *machine) start(t testing.TB) {
	_, m.network = raft.NewInmemTransport(raft.ServerAddress(m.id))
	for _, other := range m.cluster.machines {
		if other != m && other.network != nil {
			other.network.Connect(m.network.LocalAddr(), m.network)
			m.network.Connect(other.network.LocalAddr(), other.network)
		}
	}
	m.log = newParallelLog(m.disk)
	var err error
	fsm := parallelFSM{numberFSM{m.cluster}, m.log}
	m.incoming = newAppendGate(m.network.Consumer(), m.log, new(snapshotStore).last, nil)
	votes := flushingVotes{m.votes, m.log}
	m.raft, err = raft.NewRaft(m.config(), fsm, logCache(m.log), votes, raft.NewInmemSnapshotStore(), transport{
		m.network, m.config().LocalID, 0, NewLearnedAddresses(), nil, m.log, NewStepDown(), newDiskReserve("", 0, quietLogger()), m.incoming,
	})
	require.NoError(t, err)
	m.log.raft.Store(m.raft)
	m.incoming.start(m.raft)
}

// cut ends the machine, with nothing left but what is on disk.
func (m *machine) cut() {
	for _, other := range m.cluster.machines {
		if other != m {
			other.network.Disconnect(m.network.LocalAddr())
		}
	}
	m.network.DisconnectAll()
	disk, votes := m.disk.cut(), m.votes.cut()
	m.raft.Shutdown()
	m.incoming.close()
	m.disk, m.votes = disk, votes
}

func (c *poweredCluster) leader() *machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		if m.raft.State() == raft.Leader {
			return m
		}
	}
	return nil
}

// cutPower cuts a leader, alone, with a follower, or with both, who come back one after the other.
func (c *poweredCluster) cutPower(t testing.TB) {
	leader := c.leader()
	if leader == nil {
		return
	}
	for _, m := range c.machines {
		m.disk.delay.Store(int64(time.Duration(c.random.IntN(3)) * time.Millisecond))
	}
	leader.disk.delay.Store(int64(15 * time.Millisecond))
	time.Sleep(time.Duration(c.random.IntN(30)) * time.Millisecond) // not to wait for anything: when power goes
	victims := []*machine{leader}
	for _, i := range c.random.Perm(3)[:c.random.IntN(3)] {
		if c.machines[i] != leader {
			victims = append(victims, c.machines[i])
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range victims {
		m.cut()
	}
	for _, m := range victims {
		m.start(t)
		c.mu.Unlock()
		time.Sleep(time.Duration(c.random.IntN(250)) * time.Millisecond) // the same
		c.mu.Lock()
	}
}

// propose goes on until the test ends.
func (c *poweredCluster) propose(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		default:
		}
		leader := c.leader()
		if leader == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		c.mu.Lock()
		c.last++
		number := c.last
		r := leader.raft
		c.mu.Unlock()
		future := r.Apply(binary.BigEndian.AppendUint64(nil, number), time.Second)
		answered := make(chan error, 1)
		go func() { answered <- future.Error() }()
		select {
		case err := <-answered:
			if _, notApplied := future.Response().(error); err != nil || notApplied {
				continue
			}
		case <-time.After(time.Second): // it was cut off
			continue
		}
		c.mu.Lock()
		c.acked[future.Index()] = number
		if c.applied[future.Index()] != number {
			c.wrong = append(c.wrong, fmt.Sprintf("%d was acknowledged as entry %d, which is %d", number, future.Index(), c.applied[future.Index()]))
		}
		c.mu.Unlock()
	}
}

// awaitProgress waits until some more entries are acknowledged.
func (c *poweredCluster) awaitProgress(t testing.TB) {
	t.Helper()
	acked := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.acked)
	}
	before := acked()
	require.Eventually(t, func() bool { return acked() > before+10 }, testWait, time.Millisecond)
}

// numberFSM is the state machine of one node.
type numberFSM struct{ cluster *poweredCluster }

func (n numberFSM) Apply(entry *raft.Log) any {
	number := binary.BigEndian.Uint64(entry.Data)
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	if first, found := n.cluster.applied[entry.Index]; found && first != number {
		n.cluster.wrong = append(n.cluster.wrong, fmt.Sprintf("entry %d was %d and is %d", entry.Index, first, number))
	}
	n.cluster.applied[entry.Index] = number
	return nil
}

func (numberFSM) StoreConfiguration(uint64, raft.Configuration) {}

func (numberFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("no snapshots here") }

// slowDisk is a log of which a machine without power keeps what it has told to be stored.
type slowDisk struct {
	delay atomic.Int64 // nanoseconds a write takes

	mu sync.Mutex
	*raft.InmemStore
	dead bool
}

func newSlowDisk() *slowDisk { return &slowDisk{InmemStore: raft.NewInmemStore()} }

func (d *slowDisk) StoreLog(entry *raft.Log) error { return d.StoreLogs([]*raft.Log{entry}) }

func (d *slowDisk) StoreLogs(entries []*raft.Log) error {
	time.Sleep(time.Duration(d.delay.Load()))
	d.mu.Lock()
	if d.dead {
		d.mu.Unlock()
		select {} // no power
	}
	defer d.mu.Unlock()
	return d.InmemStore.StoreLogs(entries)
}

func (d *slowDisk) DeleteRange(first, last uint64) error {
	d.mu.Lock()
	if d.dead {
		d.mu.Unlock()
		select {}
	}
	defer d.mu.Unlock()
	return d.InmemStore.DeleteRange(first, last)
}

// cut answers the disk as it is from now on.
func (d *slowDisk) cut() *slowDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	return &slowDisk{InmemStore: d.InmemStore}
}

// mortalVotes are kept by a machine without power.
type mortalVotes struct {
	mu sync.Mutex
	*raft.InmemStore
	dead bool
}

func (v *mortalVotes) store(store func() error) error {
	v.mu.Lock()
	if v.dead {
		v.mu.Unlock()
		select {}
	}
	defer v.mu.Unlock()
	return store()
}

func (v *mortalVotes) Set(key, value []byte) error {
	return v.store(func() error { return v.InmemStore.Set(key, value) })
}

func (v *mortalVotes) SetUint64(key []byte, value uint64) error {
	return v.store(func() error { return v.InmemStore.SetUint64(key, value) })
}

func (v *mortalVotes) cut() *mortalVotes {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
	return &mortalVotes{InmemStore: v.InmemStore}
}

// flushingVotes does to votes in memory what voteStore does to those on disk.
type flushingVotes struct {
	raft.StableStore
	log *parallelLog
}

func (v flushingVotes) Set(key, value []byte) error {
	return errors.Join(v.log.flush(), v.StableStore.Set(key, value))
}

func (v flushingVotes) SetUint64(key []byte, value uint64) error {
	return errors.Join(v.log.flush(), v.StableStore.SetUint64(key, value))
}

func (numberFSM) Restore(io.ReadCloser) error { return errors.New("no snapshots here") }
