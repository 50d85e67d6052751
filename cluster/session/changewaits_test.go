package session_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/session"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func rootName(name string) *storepb.Observation {
	return &storepb.Observation{Parent: namespace.RootIno, Name: []byte(name)}
}

// indexOf returns a command that the cluster has applied by now.
func indexOf(t testing.TB, client *session.Client) ids.Index {
	t.Helper()
	query := &storepb.Query{Query: &storepb.Query_GetLock{GetLock: &storepb.GetLock{Parent: namespace.RootIno, Name: []byte("lock"), Brief: true}}}
	result, err := client.Query(t.Context(), query)
	require.NoError(t, err)
	require.NotZero(t, result.GetIndex())
	return ids.Index(result.GetIndex())
}

func requireTold(t testing.TB, what string, told <-chan struct{}) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(testWait):
		require.Fail(t, "no answer", what)
	}
}

func requireNotTold(t testing.TB, what string, told <-chan struct{}) {
	t.Helper()
	select {
	case <-told:
		require.Fail(t, "an answer", what)
	default:
	}
}

// awaitCovered waits until two questions have been answered that were asked from now on.
func (n *counting) awaitCovered(t testing.TB) {
	t.Helper()
	before := n.wide.Load()
	require.Eventually(t, func() bool { return n.wide.Load() >= before+3 }, testWait, time.Millisecond)
}

// TestWaitsForNamesShareOneQuestion has waits for many names, of which one changes, while replies are lost.
func TestWaitsForNamesShareOneQuestion(t *testing.T) {
	const names = 2000
	n := new(counting)
	client := openCounting(t, n)
	since := indexOf(t, client)
	changed := make([]<-chan struct{}, names)
	ends := make([]func(), names)
	polls := n.polls.Load()
	began := time.Now()
	for i := range changed {
		changed[i], ends[i] = client.NameChanged(rootName(fmt.Sprint(i)), since)
	}
	n.awaitCovered(t)
	require.LessOrEqual(t, n.polls.Load()-polls, int32(time.Since(began)/(50*time.Millisecond))+4)
	for _, told := range changed {
		requireNotTold(t, "no name has changed", told)
	}
	n.lose.Store(2)
	require.Equal(t, storepb.Code_OK, create(t, client, "7"))
	requireTold(t, "the name has changed", changed[7])
	require.Less(t, n.lose.Load(), int32(1))
	for i, told := range changed {
		if i != 7 {
			requireNotTold(t, "the others have not", told)
		}
		ends[i]()
	}
}

// TestAChangeBeforeTheWaitIsTold: the reader knows a state, which has changed since.
func TestAChangeBeforeTheWaitIsTold(t *testing.T) {
	n := new(counting)
	client := openCounting(t, n)
	other, end := client.NameChanged(rootName("other"), indexOf(t, client)) // questions are under way
	defer end()
	n.awaitCovered(t)
	since := indexOf(t, client)
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	for _, before := range []ids.Index{since, since - 1, 1} {
		told, end := client.NameChanged(rootName("lock"), before)
		requireTold(t, fmt.Sprint("since ", before), told)
		end()
	}
	now := indexOf(t, client)
	first, endFirst := client.NameChanged(rootName("lock"), now)
	defer endFirst()
	n.awaitCovered(t)
	requireNotTold(t, "it has not changed again", first)
	earlier, endEarlier := client.NameChanged(rootName("lock"), since)
	defer endEarlier()
	requireTold(t, "of what another wait knows already", earlier)
	requireNotTold(t, "the other name has not changed", other)
}

// TestAddedWaitsKeepNoOtherFromItsEnd has a program begin and end waits all the time, and a leader whose replies
// take longer than the pause between two questions.
func TestAddedWaitsKeepNoOtherFromItsEnd(t *testing.T) {
	n := new(counting)
	client := openCounting(t, n)
	held := takeFlock(t, client, "locked", 1)
	_, granted := startWaiting(t, client, held, 2)
	since := indexOf(t, client)
	told, end := client.NameChanged(rootName("lock"), since)
	defer end()
	n.awaitCovered(t)
	n.delay.Store(int64(200 * time.Millisecond))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			_, end := client.NameChanged(rootName(fmt.Sprint(i)), since)
			select {
			case <-time.After(5 * time.Millisecond):
				end()
			case <-stop:
				end()
				return
			}
		}
	}()
	polls := n.polls.Load()
	require.Eventually(t, func() bool { return n.polls.Load() >= polls+3 }, testWait, time.Millisecond)
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	requireTold(t, "the name has changed", told)
	dropLocks(t, client, held, 1)
	select {
	case result := <-granted:
		require.Equal(t, storepb.Code_OK, result.GetCode())
	case <-time.After(testWait):
		require.Fail(t, "the lock is granted, and its waiter does not learn it")
	}
	close(stop)
	<-stopped
}

// TestMountsWithoutASessionAskWithPauses: to the leader, their questions are of one session, and each ends the one before.
func TestMountsWithoutASessionAskWithPauses(t *testing.T) {
	n := new(counting)
	clients := []*session.Client{openCounting(t, n), n.open(t)}
	since := indexOf(t, clients[0])
	n.shut.Store(true)
	for _, client := range clients {
		client.EndSession(t)
		client.Hurry()
		require.Eventually(t, func() bool { return client.Remaining() == 0 }, testWait, time.Millisecond)
	}
	for _, client := range clients {
		_, end := client.NameChanged(rootName("lock"), since)
		defer end()
	}
	n.awaitCovered(t)
	began, before := time.Now(), n.polls.Load()
	require.Eventually(t, func() bool { return time.Since(began) > time.Second }, testWait, time.Millisecond)
	most := len(clients) * int(time.Since(began)/(50*time.Millisecond)+2)
	require.LessOrEqual(t, int(n.polls.Load()-before), most)
	n.shut.Store(false)
}

func TestEventsAreTold(t *testing.T) {
	n := new(counting)
	client := openCounting(t, n)
	last := func() uint64 {
		result, err := client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_ListEvents{
			ListEvents: &storepb.ListEvents{Limit: 1, Viewer: new(storepb.Viewer)},
		}})
		require.NoError(t, err)
		return result.GetLastEvent()
	}
	for i := range 3 {
		before := last()
		there, end := client.EventsAfter(before)
		require.Equal(t, storepb.Code_OK, create(t, client, fmt.Sprint(i, ".lock")))
		require.Eventually(t, func() bool { return last() > before }, testWait, time.Millisecond)
		requireTold(t, "an event", there)
		again, endAgain := client.EventsAfter(before)
		requireTold(t, "it is known", again)
		end()
		endAgain()
	}
	var quiet <-chan struct{}
	require.Eventually(t, func() bool { // a client that has not heard of an event yet tells of that first
		var end func()
		quiet, end = client.EventsAfter(last())
		t.Cleanup(end)
		n.awaitCovered(t)
		select {
		case <-quiet:
			return false
		default:
			return true
		}
	}, testWait, time.Millisecond)
}

func TestCommandsAreToldOnceASecond(t *testing.T) {
	client := openCounting(t, new(counting))
	known, changed, end := client.StateAfter(0)
	requireTold(t, "the first", changed)
	end()
	for i := range 2 {
		known, changed, end = client.StateAfter(known)
		for j := range 50 {
			require.Equal(t, storepb.Code_OK, create(t, client, fmt.Sprint(i, j)))
		}
		requireTold(t, "commands", changed)
		end()
	}
	latest, _, end := client.StateAfter(known)
	end()
	require.Greater(t, latest, known)
}

// TestWaitsForNamesOutliveTheLeader and a session.
func TestWaitsForNamesOutliveTheLeader(t *testing.T) {
	servers := startServers(t, 3)
	addresses := make([]string, 0, len(servers))
	for _, s := range servers {
		addresses = append(addresses, s.address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	dial := func() *session.Client {
		client, err := session.Dial(ctx, addresses, session.Config{
			Host: "h", OpTimeout: testWait, SessionFile: filepath.Join(t.TempDir(), "mount.session"), Logger: quietLogger(),
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close(context.Background()) })
		return client
	}
	client, maker := dial(), dial()
	told, end := client.NameChanged(rootName("lock"), indexOf(t, client))
	defer end()
	for _, s := range servers {
		status, err := s.Status(ctx, new(clusterpb.StatusRequest))
		require.NoError(t, err)
		if status.GetState() == "leader" {
			require.NoError(t, s.Close())
			break
		}
	}
	require.Equal(t, storepb.Code_OK, create(t, maker, "lock"))
	requireTold(t, "the name has changed", told)

	client.EndSession(t)
	told, end = client.NameChanged(rootName("lock"), indexOf(t, client))
	defer end()
	remove := &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte("lock")}}}
	result, err := maker.Mutate(t.Context(), new(storepb.Caller), remove)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	requireTold(t, "the name has changed again", told)
}
