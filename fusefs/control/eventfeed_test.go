package control

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestReadersOfEventsShareWhatIsFetched has many programs of one user wait for an event: it costs one question.
func TestReadersOfEventsShareWhatIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers, events = 1000, 5
		c := newCluster()
		d := directoryOf(c, nil)
		node := d.at(t, "events")
		all := make([]func(<-chan struct{}) <-chan string, readers)
		for i := range all {
			all[i] = d.opened(t, node)
		}
		asked := func() int { return c.questions(&storepb.Query_ListEvents{}) }
		opened := asked()
		for event := range events {
			data := make([]<-chan string, readers)
			for i, read := range all {
				data[i] = read(nil)
			}
			synctest.Wait()
			c.create(t, fmt.Sprint("lock", event), syscall.S_IFREG|0o644)
			time.Sleep(2 * time.Second)
			c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
			for _, line := range data {
				require.Contains(t, <-line, fmt.Sprintf(`"lock%d"`, event))
			}
		}
		require.Equal(t, events, asked()-opened)
		require.Empty(t, d.source.events.feeds)
		require.Empty(t, d.source.events.users)
	})
}

// TestAReaderThatIsBehindMissesNoEvent, also if the mount keeps them no more for those that wait.
func TestAReaderThatIsBehindMissesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 400
		c := newCluster()
		d := directoryOf(c, nil)
		node := d.at(t, "events")
		interrupted := make(chan struct{})
		defer close(interrupted)
		slow, second := d.opened(t, node), d.opened(t, node)
		long := strings.Repeat("x", 200)
		for event := range events {
			waiting := d.opened(t, node)(interrupted)
			synctest.Wait()
			c.create(t, fmt.Sprint("lock", event, long), syscall.S_IFREG|0o644)
			time.Sleep(2 * time.Second)
			c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
			if event == events/2 {
				_ = second(interrupted) // it is behind, and the feed goes on
			}
			require.Contains(t, <-waiting, fmt.Sprint(`"lock`, event, "xx"))
		}
		var text string
		for strings.Count(text, "\n") < events {
			text += <-slow(interrupted)
		}
		for event := range events {
			require.Equal(t, 2, strings.Count(text, fmt.Sprint(`"lock`, event, `xx`)), "path and name of event %d", event)
		}
	})
}

// TestEventsForOthersWakeNoReader: the mount goes on from there all the same.
func TestEventsForOthersWakeNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		d := directoryOf(c, nil)
		own, private := c.create(t, "own", syscall.S_IFDIR|0o755), c.create(t, "private", syscall.S_IFDIR|0o700)
		feeds, interrupted := d.source.events, make(chan struct{})
		done := make(chan []eventLine, 1)
		viewer := &storepb.Viewer{Uid: 1000, Gid: 1000}
		go func() {
			for after := uint64(0); ; {
				lines, upTo, errno := feeds.next(viewer, after, interrupted)
				if errno != 0 {
					close(done)
					return
				}
				done <- lines
				after = upTo
			}
		}()
		event := func(parent uint64, name string) {
			c.createIn(t, parent, name, syscall.S_IFREG|0o644)
			for range 2 {
				time.Sleep(2 * time.Second)
				c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
			}
			synctest.Wait()
		}
		event(own, "first.lock")
		for len(done) > 0 {
			<-done
		}
		event(private, "second.lock")
		require.Empty(t, done)
		feeds.mu.Lock()
		for _, feed := range feeds.feeds {
			require.Equal(t, c.ns.LastEvent(), feed.upTo)
		}
		feeds.mu.Unlock()
		event(own, "third.lock")
		require.Contains(t, string((<-done)[0].text), "third.lock")
		close(interrupted)
		_, told := <-done
		require.False(t, told)
	})
}

// TestReadersWithOtherPermissionsFetchForThemselves, a few at a time.
func TestReadersWithOtherPermissionsFetchForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		d := directoryOf(c, nil)
		const viewers = 20
		fetching := make(chan struct{}, viewers)
		var mu sync.Mutex
		most := 0
		c.before = func(query *storepb.Query) {
			if query.GetListEvents() == nil {
				return
			}
			fetching <- struct{}{}
			mu.Lock()
			most = max(most, len(fetching))
			mu.Unlock()
			time.Sleep(time.Second)
			<-fetching
		}
		interrupted := make(chan struct{})
		defer close(interrupted)
		done := make(chan syscall.Errno, viewers)
		c.create(t, "lock", syscall.S_IFREG|0o644)
		time.Sleep(2 * time.Second)
		c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
		for i := range viewers {
			go func() {
				_, _, errno := d.source.events.next(&storepb.Viewer{Uid: 1000, Gid: uint32(i)}, 0, interrupted)
				done <- errno
			}()
		}
		for range viewers {
			require.Zero(t, <-done)
		}
		require.Equal(t, mostFetches, most)
	})
}

// TestAReaderThatLeavesDuringAQueryLeavesNoBytesBehind for the other readers of its user.
func TestAReaderThatLeavesDuringAQueryLeavesNoBytesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		d := directoryOf(c, nil)
		feeds, last := d.source.events, c.ns.LastEvent()
		const far = 1 << 20 // events, which come later
		release := make(chan struct{})
		c.after = func(query *storepb.Query) {
			if query.GetListEvents().GetViewer().GetGid() == 2 {
				<-release
			}
		}
		stays, leaves := make(chan struct{}), make(chan struct{})
		for _, reader := range []struct {
			gid         uint32
			after       uint64
			interrupted chan struct{}
		}{{1, last + far, stays}, {2, last, leaves}} {
			go func() {
				_, _, _ = feeds.next(&storepb.Viewer{Uid: 1000, Gid: reader.gid}, reader.after, reader.interrupted)
			}()
		}
		synctest.Wait()
		c.create(t, "lock", syscall.S_IFREG|0o644)
		time.Sleep(2 * time.Second)
		c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
		synctest.Wait()
		close(leaves)
		synctest.Wait()
		close(release)
		synctest.Wait()
		require.Len(t, feeds.feeds, 1)
		for _, user := range feeds.users {
			require.Zero(t, user.kept)
		}
		close(stays)
		synctest.Wait()
		require.Empty(t, feeds.users)
	})
}

func TestChangesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		d := directoryOf(c, nil)
		read := d.opened(t, d.at(t, "changes"))
		require.Equal(t, fmt.Sprintln(c.index), <-read(nil))
		interrupted := make(chan struct{})
		data := read(interrupted)
		synctest.Wait()
		close(interrupted)
		require.Equal(t, fuse.EINTR.String(), <-data, "nothing has changed")
		data = read(nil)
		c.create(t, "lock", syscall.S_IFREG|0o644)
		require.Equal(t, fmt.Sprint(c.index), strings.TrimSpace(<-data))
	})
}
