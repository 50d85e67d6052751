package namespace

import (
	"math"
	"time"

	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// sessions are the present and past mounts, with the replies to their commands.
type sessions struct {
	byID      *digest.Map[ids.Session, *session]
	ended     *btree.Map[ids.Index, ids.Session] // index of its end -> id
	endedKept int                                // ended sessions and their replies
	replies   *digest.Tree[*reply]               // by session, seq
	watchers  map[watcher]int                    // number of watching sessions; never ranged over
	most      uint64                             // limit of live sessions
	lockDelay int64
}

func newSessions(d *digest.Digest) sessions {
	return sessions{
		byID: digest.NewMap(d, digest.Itself[ids.Session, *session]), ended: new(btree.Map[ids.Index, ids.Session]),
		replies: digest.NewTree(d, lessReply, nil), watchers: make(map[watcher]int),
		most: DefaultMaxSessions, lockDelay: int64(DefaultLockDelay),
	}
}

// frozen leaves out derived fields.
func (ss *sessions) frozen() sessions {
	return sessions{byID: ss.byID.Copy(), replies: ss.replies.Copy(), most: ss.most, lockDelay: ss.lockDelay}
}

func (ss *sessions) live() int { return ss.byID.Len() - ss.ended.Len() }

const (
	// MaxReplies is the most unacknowledged replies of a session.
	MaxReplies = 4096
	// DefaultMaxSessions is the limit until SetLimits changes it.
	DefaultMaxSessions = 10_000

	// How long the state remembers an expired session and its replies, so that its mount can learn the
	// outcome of pending calls. A suspended host may come back as late as this. A mount that comes back
	// later, or after too many other sessions and their replies, gets SESSION_FORGOTTEN: outcome unknown. It
	// does nothing twice.
	endedAge   = 7 * 24 * time.Hour
	endedLimit = 128 << 10
)

// session is one mount, from its start to its end. It is never modified once it is in a tree.
type session struct {
	id         ids.Session
	host       string
	bootID     string
	opened     int64
	acked      ids.Sequence // replies up to this number are dropped
	active     ids.Index    // index of its last command
	replies    int          // kept now
	endedIndex ids.Index    // 0: it has not ended
	ended      int64
	started    int64 // start of its process, on the host's CLOCK_BOOTTIME
	machine    string
	namespace  uint64        // of the processes whose ends the mount sees; 0: unknown
	noDelay    bool          // its advisory locks end with it
	versions   version.Range // cluster versions known to its program
}

// reply is the result of a session's command, also for its repetitions.
type reply struct {
	session ids.Session
	seq     ids.Sequence
	result  *storepb.Result
	undo    *storepb.Undo // nil unless the command created a name
}

// watches returns the namespace a session watches; ok is false if the session has ended.
func (s *session) watches() (w watcher, ok bool) {
	return watcher{s.host, s.bootID, s.namespace}, s.endedIndex == 0
}

// put adds a session or replaces the one with its id.
func (ss *sessions) put(s *session) {
	if old, replaced := ss.byID.Set(s.id, s); replaced {
		ss.countWatcher(old, -1)
	}
	ss.countWatcher(s, +1)
}

func (ss *sessions) countWatcher(s *session, by int) {
	w, ok := s.watches()
	if !ok {
		return
	}
	if ss.watchers[w] += by; ss.watchers[w] == 0 {
		delete(ss.watchers, w)
	}
}

func lessReply(a, b *reply) bool {
	if a.session != b.session {
		return a.session < b.session
	}
	return a.seq < b.seq
}

func (s *session) message() *storepb.SessionRecord {
	return &storepb.SessionRecord{
		Id: uint64(s.id), Host: s.host, BootId: s.bootID, Opened: s.opened, Acked: uint64(s.acked), Active: uint64(s.active),
		EndedIndex: uint64(s.endedIndex), Ended: s.ended, Started: s.started, NoLockDelay: s.noDelay, Machine: s.machine,
		PidNamespace: s.namespace, OldestVersion: s.versions.Oldest, NewestVersion: s.versions.Newest,
	}
}

func (ss *sessions) reply(session ids.Session, seq ids.Sequence) (*reply, bool) {
	return ss.replies.Get(&reply{session: session, seq: seq})
}

func (ss *sessions) keepReply(r *reply) {
	s, found := ss.byID.Get(r.session)
	if !found {
		return
	}
	if _, replaced := ss.replies.Set(r); !replaced {
		changed := *s
		changed.replies++
		ss.put(&changed)
		if s.endedIndex != 0 {
			ss.endedKept++
		}
	}
}

// acknowledge records the activity of a session, and drops the acknowledged replies.
func (ss *sessions) acknowledge(index ids.Index, s *session, acked ids.Sequence) *session {
	changed := *s
	changed.active = index
	if acked > s.acked {
		changed.acked = acked
		changed.replies -= ss.dropReplies(s.id, acked)
	}
	ss.put(&changed)
	return &changed
}

// dropReplies drops the replies up to seq and returns their number.
func (ss *sessions) dropReplies(session ids.Session, seq ids.Sequence) int {
	var old []*reply
	ss.replies.Ascend(&reply{session: session}, func(r *reply) bool {
		if r.session != session || r.seq > seq {
			return false
		}
		old = append(old, r)
		return true
	})
	for _, r := range old {
		ss.replies.Delete(r)
	}
	return len(old)
}

// delayAfter returns how long the advisory locks of a session stay reserved if it ends while programs may
// rely on them.
func (ss *sessions) delayAfter(s *session) int64 {
	if s.noDelay {
		return 0
	}
	return ss.lockDelay
}

func (ss *sessions) dropSession(id ids.Session) {
	if s, found := ss.byID.Delete(id); found {
		ss.countWatcher(s, -1)
		if s.endedIndex != 0 {
			ss.ended.Delete(s.endedIndex)
			ss.endedKept -= 1 + s.replies
		}
	}
	ss.dropReplies(id, math.MaxUint64)
}

func (ss *sessions) addEnded(s *session) {
	ss.ended.Set(s.endedIndex, s.id)
	ss.endedKept += 1 + s.replies
}

// isWatched reports whether a mount sees the end of a process: one of the same boot, in the pid namespace in
// which the process was found. If a container with a mount in it was restarted, no mount sees the processes
// of the former one.
func (ss *sessions) isWatched(host string, p processID) bool {
	return ss.isSeen(watcher{host, p.bootID.String(), p.pidNamespace})
}

func (ss *sessions) isSeen(w watcher) bool {
	return ss.watchers[w] > 0 || ss.watchers[watcher{w.host, w.bootID, 0}] > 0
}

func (ss *sessions) liveSessions() []*storepb.SessionRecord {
	var live []*storepb.SessionRecord
	ss.byID.Scan(func(_ ids.Session, s *session) bool {
		if s.endedIndex == 0 {
			live = append(live, s.message())
		}
		return true
	})
	return live
}

func (ss *sessions) hostOf(id ids.Session) string {
	if s, found := ss.byID.Get(id); found {
		return s.host
	}
	return ""
}

func (ss *sessions) withHosts(locks ...*storepb.AdvisoryLock) []*storepb.AdvisoryLock {
	for _, lock := range locks {
		if s, found := ss.byID.Get(ids.Session(lock.GetSession())); found {
			lock.Host = s.host
		}
	}
	return locks
}

// dropExpiredSessions forgets old ended sessions. Every command runs it.
func (ss *sessions) dropExpiredSessions(now int64) {
	for {
		_, id, found := ss.ended.Min()
		if !found {
			return
		}
		s, found := ss.byID.Get(id)
		if found && ss.endedKept <= endedLimit && now-s.ended <= int64(endedAge) {
			return
		}
		ss.dropSession(id)
	}
}

// DefaultLockDelay is the lock delay until SetLimits changes it.
const DefaultLockDelay = 15 * time.Second
