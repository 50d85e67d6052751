package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/history"
)

// world is a cluster with all that uses it, from a seed.
type world struct {
	plan
	net     *network
	random  *rand.Rand // of what happens to it
	dir     string     // of the host's disk
	began   time.Time
	logger  *slog.Logger
	log     bytes.Buffer
	logging sync.Mutex
	servers []*server
	mounts  []*mount
	dirs    []*directory // of the histories
	locked  lockFile

	opTimeout time.Duration
	playing   sync.WaitGroup // players, and mounts that start
	closing   sync.WaitGroup // what is dead, and is cleared away

	mu       sync.Mutex
	over     bool
	problems []error
	did      map[string]int // how often what happened
	clients  int
	settled  int64
	recovery time.Duration // from when nothing was broken any more until every mount worked
}

// plan is what a world is made of.
type plan struct {
	seed    uint64
	voters  int
	near    int // mounts in servers' processes
	far     int // mounts on hosts of their own
	inDirs  int // histories
	calls   int // of each player: one in each directory through each mount; and of each locker
	lockers int // through each mount
	harms   []harm
	logs    bool
}

func usual(seed uint64) plan {
	return plan{seed: seed, voters: 3, near: 2, far: 2, inDirs: 3, calls: 40, harms: harms}
}

func withLockers(seed uint64) plan {
	return plan{seed: seed, voters: 3, near: 2, far: 2, lockers: 2, calls: 30, harms: harms}
}

// Write takes the log.
func (w *world) Write(b []byte) (int, error) {
	w.logging.Lock()
	defer w.logging.Unlock()
	return w.log.Write(b)
}

func newWorld(p plan, dir string) *world {
	w := &world{
		plan: p, net: newNetwork(p.seed), random: rand.New(rand.NewPCG(p.seed, 1)), dir: dir, began: time.Now(),
		did: make(map[string]int), logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})),
	}
	if p.logs {
		w.logger = slog.New(slog.NewTextHandler(w, nil))
	}
	w.opTimeout = []time.Duration{1500 * time.Millisecond, 5 * time.Second}[w.random.IntN(2)]
	for i := range p.voters {
		s := &server{
			w: w, name: fmt.Sprintf("s%d", i), h: w.net.addHost(fmt.Sprintf("10.0.0.%d", 1+i)), since: w.began,
			random: rand.New(rand.NewPCG(p.seed, 100+uint64(i))),
		}
		w.servers = append(w.servers, s)
		if i < p.near {
			m := &mount{w: w, name: s.name, h: s.h, near: s, changed: make(chan struct{})}
			s.mounts = append(s.mounts, m)
			w.mounts = append(w.mounts, m)
		}
	}
	for i := range p.far {
		h := w.net.addHost(fmt.Sprintf("10.0.1.%d", 1+i))
		w.mounts = append(w.mounts, &mount{w: w, name: fmt.Sprintf("m%d", i), h: h, changed: make(chan struct{})})
	}
	for _, m := range w.mounts {
		m.file = filepath.Join(dir, m.name+"-mount", "journal-0")
	}
	return w
}

func (w *world) addresses() (addresses []string) {
	for _, s := range w.servers {
		addresses = append(addresses, s.address())
	}
	return addresses
}

// now is when something happens, for a history.
func (w *world) now() int64 { return int64(time.Since(w.began)) + 1 }

func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Errorf("after %v: %w", time.Since(w.began), err))
}

func (w *world) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

func (w *world) noteDone(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did[what]++
}

func (w *world) count(call *history.Call) {
	what := "calls"
	if call.Unknown() {
		what = "calls of unknown outcome"
	}
	w.noteDone(what)
}

func (d *directory) newClient(w *world) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients++
	return w.clients
}

func (d *directory) add(call *history.Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, call)
}

// patience is far more than anything takes that is not harmed any more, in simulated time.
const patience = 2 * time.Minute

// live lets the world go on from what its disks hold, until all is played and all is settled.
func (w *world) live(disks map[string]image) {
	for _, s := range w.servers {
		s.newDisk(disks[s.name])
		s.start()
	}
	for _, m := range w.mounts {
		if m.near == nil {
			w.playing.Go(m.start)
		}
	}
	w.makeDirs()
	w.makeLocked()
	players := make(chan struct{})
	go func() {
		var group sync.WaitGroup
		for i, d := range w.dirs {
			for j, m := range w.mounts {
				p := &player{
					w: w, mount: m, dir: d, random: rand.New(rand.NewPCG(w.seed, uint64(1000+100*i+j))), calls: w.calls, lives: 3, gen: m.generation(),
				}
				p.client = d.newClient(w)
				group.Go(p.play)
			}
		}
		for _, l := range w.newLockers() {
			group.Go(l.play)
		}
		group.Wait()
		close(players)
	}()
	w.harm(players)
	mended := time.Now()
	w.settle()
	w.recovery = time.Since(mended)
	w.lockAll()
	w.look()
	w.compare()
	w.end()
}

// makeDirs makes what the histories are in.
func (w *world) makeDirs() {
	for i := range w.inDirs {
		name := fmt.Sprintf("d%d", i)
		w.dirs = append(w.dirs, &directory{name: name, ino: w.make(name, syscall.S_IFDIR|0o755)})
	}
}

// settle waits until every mount has had something done. It does that only once what it gave up before is settled.
func (w *world) settle() {
	var settling sync.WaitGroup
	for _, m := range w.mounts {
		settling.Go(func() {
			for try := 0; !w.isOver(); try++ {
				client, _ := m.await()
				result, err := client.Mutate(context.Background(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
					Parent: uint64(namespace.RootIno), Name: fmt.Appendf(nil, "settled-%s-%d", m.name, try), Mode: syscall.S_IFREG | fileMode, Exclusive: true,
				}}})
				if err == nil && result.GetCode() == storepb.Code_OK {
					m.allSettled()
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	w.awaitOrEnd(&settling, "not all mounts work again, though nothing is in their way")
	w.settled = w.now()
}

// make makes a name in the root, with a number behind it, and answers its inode.
func (w *world) make(name string, mode uint32) uint64 {
	for try := 0; ; try++ {
		client, _ := w.mounts[try%len(w.mounts)].await()
		result, err := client.Mutate(context.Background(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
			Parent: uint64(namespace.RootIno), Name: fmt.Appendf(nil, "%s.%d", name, try), Mode: mode, Exclusive: true,
		}}})
		if err == nil && result.GetCode() == storepb.Code_OK {
			return result.GetAttr().GetIno()
		}
	}
}

// awaitOrEnd ends the world with a problem if something takes too long.
func (w *world) awaitOrEnd(group *sync.WaitGroup, problem string) {
	if waitFor(group) {
		return
	}
	w.fail(errors.New(problem))
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	group.Wait()
}

// waitFor is false if it takes too long.
func waitFor(group *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

// look has every mount look at all there is.
func (w *world) look() {
	var looking sync.WaitGroup
	for _, d := range w.dirs {
		looking.Go(func() {
			for _, m := range w.mounts {
				p := &player{w: w, mount: m, dir: d, client: d.newClient(w), calls: 100, lives: 1, gen: m.generation()}
				listed := &history.Call{Kind: history.List}
				p.record(listed)
				names := append([]string(nil), history.Shared...)
				for name := range listed.Got.Entries {
					names = append(names, name)
				}
				for _, name := range names {
					p.did(history.Stat, name)
					if f, ok := p.opens(history.Look, name); ok {
						p.file(history.Read, f, "")
					}
				}
			}
		})
	}
	if !waitFor(&looking) {
		w.fail(errors.New("what there is cannot be looked at"))
	}
}

// compare requires that all servers have the same state.
func (w *world) compare() {
	deadline := time.Now().Add(patience)
	for {
		hashes := make(map[uint64]map[string]string)
		same := 0
		for _, s := range w.servers {
			node := s.running()
			if node == nil {
				continue
			}
			status, err := node.Status(context.Background(), &clusterpb.StatusRequest{Hash: true})
			if err != nil {
				continue
			}
			at := status.GetStateIndex()
			if hashes[at] == nil {
				hashes[at] = make(map[string]string)
			}
			for other, hash := range hashes[at] {
				if hash != status.GetStateHash() {
					w.fail(fmt.Errorf("%s and %s differ after command %d", other, s.name, at))
					return
				}
			}
			hashes[at][s.name] = status.GetStateHash()
			same = max(same, len(hashes[at]))
		}
		if same == len(w.servers) {
			return
		}
		if time.Now().After(deadline) {
			w.fail(fmt.Errorf("the servers do not come to the same command: %v", hashes))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// end closes all that there is.
func (w *world) end() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.playing.Wait()
	for _, m := range w.mounts {
		m.mu.Lock()
		client := m.client
		m.client = nil
		m.mu.Unlock()
		if client != nil {
			w.closing.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_ = client.Close(ctx)
			})
		}
	}
	w.closing.Wait()
	for _, s := range w.servers {
		s.mu.Lock()
		node := s.node
		s.node = nil
		s.mu.Unlock()
		close(s.disk.gone)
		if node != nil {
			w.closing.Go(func() { _ = node.Close() })
		}
	}
	w.closing.Wait()
}

// check looks for an order in which everything can have happened. It takes time that is not simulated.
func (w *world) check() error {
	problems := w.problems
	for _, d := range w.dirs {
		h := &history.History{Calls: d.calls, Settled: w.settled, Forgetful: true}
		if err := h.Check(checkTime); err != nil {
			problems = append(problems, err)
		}
		if err := checkTokens(d.tokens); err != nil {
			problems = append(problems, err)
		}
	}
	if err := w.checkLocks(); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// digest tells histories apart.
func (w *world) digest() string {
	hash := sha256.New()
	for _, d := range w.dirs {
		for _, call := range d.calls {
			text, err := json.Marshal(call)
			must(err)
			_, _ = hash.Write(text)
		}
	}
	for _, call := range w.locked.calls {
		text, err := json.Marshal(call)
		must(err)
		_, _ = hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// checkTime is far more than a history takes.
const checkTime = 3 * time.Second

// founded are the disks of new clusters, by the number of servers.
var founded = make(map[int]map[string]image)

// foundedDisks are those of a new cluster, in which all names are locks.
func foundedDisks(t *testing.T, servers int) map[string]image {
	if founded[servers] == nil {
		forgiving(func() {
			synctest.Test(t, func(t *testing.T) { founded[servers] = found(t, servers) })
		})
	}
	return founded[servers]
}

func found(t *testing.T, servers int) map[string]image {
	w := newWorld(plan{voters: servers}, scratch(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, s := range w.servers {
		s.newDisk(nil)
		cfg := s.config()
		if cfg.Bootstrap = i == 0; i > 0 {
			cfg.Join = []string{w.servers[0].address()}
		}
		node, err := cluster.Open(cfg)
		must(err)
		must(node.WaitReady(ctx))
		s.node = node
	}
	reply, err := w.servers[0].node.Change(ctx, &clusterpb.ChangeRequest{Op: &storepb.Op{Op: &storepb.Op_SetRule{SetRule: &storepb.SetRule{
		Rule: &storepb.Rule{Pattern: "*", StaleAfter: int64(10000 * time.Hour)},
	}}}})
	must(err)
	if reply.GetResult().GetCode() != storepb.Code_OK {
		panic(fmt.Sprint(reply))
	}
	for _, s := range w.servers {
		for voters := 0; voters != servers; time.Sleep(10 * time.Millisecond) {
			status, err := s.node.Status(ctx, new(clusterpb.StatusRequest))
			must(err)
			voters = len(status.GetVoters())
		}
	}
	synctest.Wait()
	disks := make(map[string]image)
	for _, s := range w.servers {
		disks[s.name] = readImage(s.disk.dir)
	}
	w.end()
	return disks
}
