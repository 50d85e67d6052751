package control

import (
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

const (
	// eventPage is the number of events in one query.
	eventPage = 100
	// mostFetches limits the concurrent queries for one user, over all readers with different groups.
	mostFetches = 4
	// mostKept limits the bytes of events that the mount keeps for one user's readers, which may be a little
	// behind.
	mostKept = 1 << 20
	// pausePerReader is between two pages, for each reader. So readers of a busy cluster get many events at
	// once.
	pausePerReader = 100 * time.Microsecond
	longestPause   = time.Second
)

// eventFeeds let readers wait for events. Readers with equal permissions share a feed: an event costs one
// query, and wakes only readers with permission to see it.
type eventFeeds struct {
	query       func(*storepb.Query) (*storepb.Result, syscall.Errno)
	eventsAfter func(number uint64) (there <-chan struct{}, end func())

	mu    sync.Mutex
	feeds map[string]*eventFeed // by viewer
	users map[uint32]*feedUser
}

// eventFeed has the latest events for readers with equal permissions, while some of them wait.
type eventFeed struct {
	viewer  *storepb.Viewer
	user    *feedUser
	readers int
	over    chan struct{} // closed after the last reader

	after uint64 // number of an event: lines has all later visible ones
	upTo  uint64 // up to this one
	lines []eventLine
	news  chan struct{} // closed with new lines or errno
	errno syscall.Errno // the reason for no further lines
}

// eventLine is an event as a line of JSON.
type eventLine struct {
	number uint64
	text   []byte
}

// feedUser is a user with feeds or queries.
type feedUser struct {
	uses  int
	slots chan struct{} // one element for each query under way
	kept  int           // bytes
}

func newEventFeeds(
	query func(*storepb.Query) (*storepb.Result, syscall.Errno), eventsAfter func(number uint64) (there <-chan struct{}, end func()),
) *eventFeeds {
	return &eventFeeds{query: query, eventsAfter: eventsAfter, feeds: make(map[string]*eventFeed), users: make(map[uint32]*feedUser)}
}

// next waits for events after a number until interrupted is closed. It returns the events, possibly none, and
// the number up to which they are complete.
func (f *eventFeeds) next(viewer *storepb.Viewer, after uint64, interrupted <-chan struct{}) ([]eventLine, uint64, syscall.Errno) {
	feed, leave, errno := f.enter(viewer, after)
	if errno != 0 {
		return nil, 0, errno
	}
	defer leave()
	for {
		f.mu.Lock()
		lines, upTo, news, errno := feed.linesAfter(after), feed.upTo, feed.news, feed.errno
		isBehind := after < feed.after
		f.mu.Unlock()
		switch {
		case isBehind:
			return f.page(viewer, after)
		case len(lines) > 0:
			return lines, upTo, 0
		case errno != 0:
			return nil, 0, errno
		}
		if errno := waitFor(news, interrupted); errno != 0 {
			return nil, 0, errno
		}
	}
}

// enter adds a reader to the feed for its permissions.
func (f *eventFeeds) enter(viewer *storepb.Viewer, after uint64) (feed *eventFeed, leave func(), errno syscall.Errno) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(viewer)
	if err != nil {
		return nil, nil, syscall.EIO
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if feed = f.feeds[string(text)]; feed == nil || feed.errno != 0 {
		feed = &eventFeed{
			viewer: viewer, user: f.use(viewer), over: make(chan struct{}), news: make(chan struct{}), after: after, upTo: after,
		}
		f.feeds[string(text)] = feed
		go f.follow(feed)
	}
	feed.readers++
	return feed, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if feed.readers--; feed.readers > 0 {
			return
		}
		close(feed.over)
		feed.drop(len(feed.lines))
		f.endUse(viewer, feed.user)
		if f.feeds[string(text)] == feed {
			delete(f.feeds, string(text))
		}
	}, 0
}

// use and endUse need the mutex.
func (f *eventFeeds) use(viewer *storepb.Viewer) *feedUser {
	uid := hostinfo.BudgetUID(viewer.GetUid())
	user := f.users[uid]
	if user == nil {
		user = &feedUser{slots: make(chan struct{}, mostFetches)}
		f.users[uid] = user
	}
	user.uses++
	return user
}

func (f *eventFeeds) endUse(viewer *storepb.Viewer, user *feedUser) {
	if user.uses--; user.uses == 0 {
		delete(f.users, hostinfo.BudgetUID(viewer.GetUid()))
	}
}

// follow fetches events for a feed until it has no reader.
func (f *eventFeeds) follow(feed *eventFeed) {
	for {
		there, end := f.eventsAfter(feed.upTo)
		isOver := waitFor(there, feed.over) != 0
		end()
		if isOver {
			return
		}
		pause := askAgainPause
		switch lines, upTo, errno := f.page(feed.viewer, feed.upTo); errno {
		case 0:
			pause = f.add(feed, lines, upTo)
		case syscall.ETIMEDOUT: // the readers wait anyway
		default:
			f.fail(feed, errno)
			return
		}
		if waitFor(pauseFor(pause), feed.over) != 0 {
			return
		}
	}
}

func (f *eventFeeds) fail(feed *eventFeed, errno syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	feed.errno = errno
	close(feed.news)
}

// add gives a page to the readers of a feed, and returns the pause before the next. A feed without readers
// keeps nothing.
func (f *eventFeeds) add(feed *eventFeed, lines []eventLine, upTo uint64) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	feed.upTo = upTo
	if len(lines) == 0 || feed.readers == 0 {
		return min(time.Duration(feed.readers)*pausePerReader, longestPause)
	}
	before := len(feed.lines)
	for _, line := range lines {
		feed.user.kept += len(line.text)
	}
	feed.lines = append(slices.Clone(feed.lines), lines...)
	for before > 0 && feed.user.kept > mostKept {
		feed.drop(1)
		before--
	}
	close(feed.news)
	feed.news = make(chan struct{})
	return min(time.Duration(feed.readers)*pausePerReader, longestPause)
}

// drop forgets the oldest lines.
func (feed *eventFeed) drop(count int) {
	for _, line := range feed.lines[:count] {
		feed.user.kept -= len(line.text)
		feed.after = line.number
	}
	feed.lines = feed.lines[count:]
}

func (feed *eventFeed) linesAfter(number uint64) []eventLine {
	first, _ := slices.BinarySearchFunc(feed.lines, number+1, func(line eventLine, number uint64) int {
		return int(int64(line.number) - int64(number))
	})
	return feed.lines[first:]
}

// page fetches existing events after a number, without waiting.
func (f *eventFeeds) page(viewer *storepb.Viewer, after uint64) (lines []eventLine, upTo uint64, errno syscall.Errno) {
	f.mu.Lock()
	user := f.use(viewer)
	f.mu.Unlock()
	user.slots <- struct{}{}
	result, errno := f.query(listEvents(&storepb.ListEvents{After: after, Limit: eventPage, Viewer: viewer}))
	<-user.slots
	f.mu.Lock()
	f.endUse(viewer, user)
	f.mu.Unlock()
	if errno != 0 {
		return nil, 0, errno
	}
	upTo = after
	for _, event := range result.GetEvents() {
		upTo = event.GetNumber()
		lines = append(lines, eventLine{upTo, append(lockjson.EventLine(event), '\n')})
	}
	if len(lines) < eventPage {
		upTo = max(upTo, result.GetLastEvent()) // the others are invisible to the viewer
	}
	return lines, upTo, 0
}

func listEvents(q *storepb.ListEvents) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_ListEvents{ListEvents: q}}
}

// askAgainPause is the pause after a failed query: a closed client fails at once.
const askAgainPause = 200 * time.Millisecond

// waitFor returns EINTR if interrupted is closed first.
func waitFor(happened, interrupted <-chan struct{}) syscall.Errno {
	select {
	case <-happened:
		return 0
	case <-interrupted:
		return syscall.EINTR
	}
}

func pauseFor(d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	time.AfterFunc(d, func() { close(over) })
	return over
}
