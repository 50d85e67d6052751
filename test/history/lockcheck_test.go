package history

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// locked is one call of a history of locks made by hand. Client 0 and 1 are on host a, 2 on b. The descriptor of
// a client is 1 unless it says otherwise.
type locked struct {
	client     int
	start, end int64 // seconds
	kind       Kind
	mode       Mode
	in         Range
	wait       bool
	opened     int
	era        int
	errno      syscall.Errno
	got        LockSeen
}

func (l locked) call(seq int) *LockCall {
	if l.kind == Flock {
		l.in = everything
	}
	return &LockCall{
		Record: Record{
			Client: l.client, Seq: 10 + seq, Host: []string{"a", "a", "b"}[l.client], Dir: "d",
			Start: l.start * int64(time.Second), End: l.end * int64(time.Second), Errno: l.errno,
		},
		File: "f", Pid: 100 + l.client, Kind: l.kind, Opened: max(1, l.opened), Era: l.era, Mode: l.mode, Range: l.in,
		Wait: l.wait, Got: l.got,
	}
}

// The histories below have an operation timeout and a lock delay of so many seconds.
const (
	handTimeout = 5
	handDelay   = 10
)

const (
	again       = syscall.EAGAIN
	interrupted = syscall.EINTR
	lost        = syscall.EIO
)

var lockHistories = []struct {
	name     string
	possible bool
	calls    []locked
}{
	{"nothing", true, nil},

	{"flock, one after the other", true, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 1, start: 3, end: 4, kind: Flock, mode: ReadLock, errno: again},
		{client: 0, start: 5, end: 6, kind: Flock},
		{client: 1, start: 7, end: 8, kind: Flock, mode: ReadLock},
		{client: 2, start: 9, end: 10, kind: Flock, mode: ReadLock},
	}},
	{"two have it", false, []locked{
		{client: 0, start: 1, end: 4, kind: Flock, mode: WriteLock},
		{client: 2, start: 2, end: 3, kind: Flock, mode: WriteLock},
	}},
	{"one reads what another writes", false, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: ReadLock},
		{client: 2, start: 3, end: 4, kind: Flock, mode: WriteLock},
		{client: 0, start: 5, end: 6, kind: Read},
	}},
	{"refused though free", false, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 0, start: 3, end: 4, kind: Flock},
		{client: 2, start: 5, end: 6, kind: Flock, mode: WriteLock, errno: again},
	}},
	{"refused though only another kind is locked", false, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 2, start: 3, end: 4, kind: Posix, mode: WriteLock, errno: again},
	}},
	{"refused because of its own process", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{2, 5}},
		{client: 0, start: 3, end: 4, kind: OFD, mode: ReadLock, in: Range{5, 6}, errno: again},
		{client: 0, start: 5, end: 6, kind: Posix, mode: ReadLock, in: Range{2, 5}, opened: 2},
	}},
	{"a conversion gives up and gets", true, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: ReadLock},
		{client: 0, start: 3, end: 8, kind: Flock, mode: WriteLock, wait: true},
		{client: 2, start: 3, end: 4, kind: Flock, mode: WriteLock, wait: true},
		{client: 2, start: 5, end: 6, kind: Flock},
	}},
	{"a conversion that is refused has given up", true, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: ReadLock},
		{client: 2, start: 1, end: 2, kind: Flock, mode: ReadLock},
		{client: 0, start: 3, end: 4, kind: Flock, mode: WriteLock, errno: again},
		{client: 2, start: 5, end: 6, kind: Flock, mode: WriteLock},
	}},
	{"a conversion that is refused has kept", false, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: ReadLock},
		{client: 2, start: 1, end: 2, kind: Flock, mode: ReadLock},
		{client: 0, start: 3, end: 4, kind: Flock, mode: WriteLock, errno: again},
		{client: 2, start: 5, end: 6, kind: Flock, mode: WriteLock, errno: again},
	}},

	{"a range is split", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, beyond}},
		{client: 0, start: 3, end: 4, kind: Posix, in: Range{3, 4}},
		{client: 2, start: 5, end: 6, kind: Posix, mode: WriteLock, in: Range{3, 4}},
		{client: 2, start: 7, end: 8, kind: OFD, mode: ReadLock, in: Range{5, 5}, errno: again},
		{client: 2, start: 7, end: 8, kind: Posix, mode: ReadLock, in: Range{beyond, beyond}, errno: again},
		{client: 1, start: 9, end: 10, kind: TestPosix, mode: ReadLock, in: Range{0, 7}, got: LockSeen{WriteLock, Range{0, 2}, 100}},
		{client: 1, start: 9, end: 10, kind: TestPosix, mode: ReadLock, in: Range{0, 7}, got: LockSeen{WriteLock, Range{3, 4}, 0}},
		{client: 1, start: 11, end: 12, kind: Posix, in: Range{0, 1}},
	}},
	{"a range is split, and its end is lost", false, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, beyond}},
		{client: 0, start: 3, end: 4, kind: Posix, in: Range{3, 4}},
		{client: 2, start: 5, end: 6, kind: Posix, mode: WriteLock, in: Range{5, 5}},
		{client: 0, start: 7, end: 8, kind: Read},
	}},
	{"a range is not split", false, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, beyond}},
		{client: 0, start: 3, end: 4, kind: Posix, in: Range{3, 4}},
		{client: 2, start: 5, end: 6, kind: Posix, mode: WriteLock, in: Range{3, 4}, errno: again},
	}},
	{"downgraded in part", true, []locked{
		{client: 0, start: 1, end: 2, kind: OFD, mode: WriteLock, in: Range{0, 7}},
		{client: 0, start: 3, end: 4, kind: OFD, mode: ReadLock, in: Range{2, 3}},
		{client: 2, start: 5, end: 6, kind: OFD, mode: ReadLock, in: Range{2, 3}},
		{client: 2, start: 7, end: 8, kind: OFD, mode: ReadLock, in: Range{3, 4}, errno: again},
		{client: 2, start: 9, end: 10, kind: TestOFD, mode: WriteLock, in: Range{3, 3}, got: LockSeen{ReadLock, Range{2, 3}, -1}},
		{client: 2, start: 11, end: 12, kind: Read},
	}},
	{"a descriptor has what another one has", false, []locked{
		{client: 0, start: 1, end: 2, kind: OFD, mode: WriteLock, in: Range{0, 7}},
		{client: 0, start: 3, end: 4, kind: OFD, mode: WriteLock, in: Range{0, 7}, opened: 2},
		{client: 0, start: 5, end: 6, kind: Read},
	}},

	{"seen where there is nothing", false, []locked{
		{client: 1, start: 3, end: 4, kind: TestPosix, mode: ReadLock, in: Range{0, 7}, got: LockSeen{WriteLock, Range{0, 2}, 100}},
		{client: 1, start: 5, end: 6, kind: Read},
	}},
	{"not seen though there", false, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: ReadLock, in: Range{2, 3}},
		{client: 1, start: 3, end: 4, kind: TestPosix, mode: WriteLock, in: Range{0, 7}},
		{client: 0, start: 5, end: 6, kind: Read},
		{client: 1, start: 5, end: 6, kind: Read},
	}},
	{"not seen, as it excludes nothing", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: ReadLock, in: Range{2, 3}},
		{client: 1, start: 3, end: 4, kind: TestPosix, mode: ReadLock, in: Range{0, 7}},
		{client: 1, start: 5, end: 6, kind: Read},
	}},
	{"seen in the wrong mode", false, seenAs(LockSeen{WriteLock, Range{2, 3}, 100})},
	{"seen too large", false, seenAs(LockSeen{ReadLock, Range{2, 4}, 100})},
	{"seen of another process", false, seenAs(LockSeen{ReadLock, Range{2, 3}, 102})},
	{"seen without its process", false, seenAs(LockSeen{ReadLock, Range{2, 3}, 0})},
	{"seen as it is", true, seenAs(LockSeen{ReadLock, Range{2, 3}, 100})},

	{"interrupted, and so without the lock", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock},
		{client: 1, start: 3, end: 4, kind: Posix, mode: WriteLock, wait: true, errno: interrupted},
		{client: 0, start: 5, end: 6, kind: Posix},
		{client: 2, start: 7, end: 8, kind: Posix, mode: WriteLock},
		{client: 1, start: 9, end: 10, kind: Read},
	}},
	{"interrupted, and it has the lock", false, []locked{
		{client: 1, start: 3, end: 4, kind: Posix, mode: WriteLock, wait: true, errno: interrupted},
		{client: 2, start: 7, end: 8, kind: Posix, mode: WriteLock, errno: again},
	}},
	{"interrupted so late that it may have had the lock", true, []locked{
		{client: 1, start: 3, end: 9, kind: Posix, mode: WriteLock, wait: true, errno: interrupted},
		{client: 2, start: 10, end: 11, kind: Posix, mode: WriteLock, errno: again},
	}},
	{"interrupted at once, while the cluster did not answer, so that it may have had the lock", true, []locked{
		{client: 0, start: 1, end: 7, kind: TestPosix, mode: ReadLock, errno: timedOut},
		{client: 1, start: 8, end: 9, kind: Posix, mode: WriteLock, wait: true, errno: interrupted},
		{client: 2, start: 10, end: 11, kind: Posix, mode: WriteLock, errno: again},
	}},
	{"a late interrupt left it what it had in a session that ended, and it is told of that", true, []locked{
		{client: 1, start: 3, end: 9, kind: OFD, mode: WriteLock, in: Range{0, 3}, wait: true, errno: interrupted},
		{client: 1, start: 10, end: 11, kind: TestOFD, mode: WriteLock, in: Range{0, 0}, got: LockSeen{WriteLock, Range{0, 3}, -1}},
	}},
	{"it waited in two sessions, and what it got in the first stays", true, []locked{
		{client: 1, start: 3, end: 9, kind: Posix, mode: ReadLock, in: Range{0, 6}, wait: true},
		{client: 1, start: 10, end: 11, kind: Posix, in: Range{2, 6}},
		{client: 2, start: 12, end: 13, kind: Posix, mode: WriteLock, in: Range{4, 4}, errno: again},
	}},
	{"after a late interrupt it took the lock, and another one too", false, []locked{
		{client: 1, start: 3, end: 9, kind: Posix, mode: WriteLock, wait: true, errno: interrupted},
		{client: 1, start: 10, end: 11, kind: Posix, mode: WriteLock},
		{client: 2, start: 12, end: 13, kind: Posix, mode: WriteLock},
		{client: 1, start: 14, end: 15, kind: Read},
	}},
	{"an answer that says so once others have had the lock of the session that ended", true, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: ReadLock},
		{client: 2, start: 100, end: 101, kind: Flock, mode: WriteLock},
		{client: 0, start: 102, end: 103, kind: Flock, mode: WriteLock, errno: lost},
	}},
	{"of unknown outcome, and granted and refused after that", true, []locked{
		{client: 0, start: 1, end: 6, kind: Flock, mode: WriteLock, errno: timedOut},
		{client: 1, start: 7, end: 8, kind: Flock, mode: WriteLock, errno: again},
		{client: 2, start: 9, end: 10, kind: Flock, mode: WriteLock},
		{client: 0, start: 11, end: 12, kind: Read},
	}},

	{"a close drops the locks of a process", true, closedBy(Posix, 0)},
	{"a close does not drop the locks of a process", false, closedBy(Posix, again)},
	{"a close does not drop what was locked in a session that had ended", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock},
		{client: 0, start: 3, end: 4, kind: OFD, mode: WriteLock, in: Range{7, 7}, opened: 2},
		{client: 0, start: 5, end: 6, kind: Close},
		{client: 0, start: 7, end: 8, kind: Read, opened: 2, era: 1},
		{client: 2, start: 9, end: 10, kind: Posix, mode: WriteLock, errno: again},
	}},
	{"a close does not drop what was locked in a session that had ended, though the other descriptor was of it once", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 0}, opened: 2},
		{client: 0, start: 3, end: 4, kind: OFD, mode: WriteLock, in: Range{7, 7}, opened: 2},
		{client: 0, start: 5, end: 6, kind: Close, opened: 3},
		{client: 0, start: 7, end: 8, kind: OFD, in: Range{7, 7}, opened: 2, era: 1},
		{client: 0, start: 9, end: 10, kind: Posix, mode: WriteLock, in: Range{0, 0}, opened: 4, era: 1},
		{client: 0, start: 11, end: 12, kind: Close, opened: 4, era: 1},
		{client: 0, start: 13, end: 14, kind: Read, opened: 2, era: 2},
		{client: 2, start: 15, end: 16, kind: Posix, mode: WriteLock, in: Range{0, 0}, errno: again},
	}},
	{"another close drops an open file description's lock late", true, closedBy(OFD, again)},
	{"another descriptor's close drops the locks of an open file description", false, []locked{
		{client: 0, start: 1, end: 2, kind: OFD, mode: WriteLock, opened: 2},
		{client: 0, start: 3, end: 4, kind: Close},
		{client: 2, start: 5, end: 6, kind: OFD, mode: WriteLock},
		{client: 0, start: 7, end: 8, kind: Read, opened: 2, era: 1},
	}},

	{"a process does not see what it has closed, of which the cluster does not know yet", true, closedInSilence(0)},
	{"another process does not see that, and then it does", false, closedInSilence(1)},

	{"its session was lost, and the lock delay is over", true, afterLoss(2 + handDelay)},
	{"its session was lost, and the lock delay is not over", false, afterLoss(handDelay - 3)},
	{"it shows that it still has it", false, append(afterLoss(2+handDelay),
		locked{client: 0, start: 5 + handDelay, end: 6 + handDelay, kind: Write})},
	{"its session was lost, and another descriptor is used in the next one", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock},
		{client: 0, start: 2 + handDelay, end: 3 + handDelay, kind: OFD, in: Range{7, 7}, opened: 2},
		{client: 2, start: 4 + handDelay, end: 5 + handDelay, kind: Posix, mode: WriteLock},
	}},
	{"its session was lost, and it locks through another descriptor", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 3}},
		{client: 2, start: 2 + handDelay, end: 3 + handDelay, kind: Posix, mode: WriteLock, in: Range{0, 0}},
		{client: 0, start: 4 + handDelay, end: 5 + handDelay, kind: TestPosix, mode: WriteLock, in: Range{3, 3}, opened: 2},
		{client: 0, start: 6 + handDelay, end: 7 + handDelay, kind: Posix, mode: WriteLock, in: Range{2, 3}, opened: 2},
	}},
	{"its session was lost, and what it had is another's to it", true, testOfOwn(2)},
	{"what it has is another's to it", false, testOfOwn(1)},
	{"its session was lost, it releases all through another descriptor, and locks again", true, inTheNext(
		locked{client: 0, start: 6 + handDelay, end: 7 + handDelay, kind: Posix, opened: 2, in: everything},
		locked{client: 0, start: 8 + handDelay, end: 9 + handDelay, kind: Posix, mode: ReadLock, in: Range{0, 0}, opened: 2},
	)},
	{"it releases all through another descriptor, after another one has what it shows that it had", false, inTheNext(
		locked{client: 0, start: 6 + handDelay, end: 7 + handDelay, kind: Read},
		locked{client: 0, start: 8 + handDelay, end: 9 + handDelay, kind: Posix, opened: 2, in: everything},
	)},
	{"its session was lost, and it goes on with what it has in the next one", true, inTheNext(
		locked{client: 0, start: 6 + handDelay, end: 7 + handDelay, kind: Posix, mode: ReadLock, in: Range{6, 7}, opened: 2},
		locked{client: 2, start: 6 + handDelay, end: 7 + handDelay, kind: Posix, mode: WriteLock, in: Range{7, 7}, errno: again},
		locked{client: 0, start: 8 + handDelay, end: 9 + handDelay, kind: TestOFD, mode: WriteLock, in: Range{3, 3}, opened: 2},
	)},
	{"its session was lost, and another one has what it has in the next one", false, inTheNext(
		locked{client: 2, start: 6 + handDelay, end: 7 + handDelay, kind: Posix, mode: WriteLock, in: Range{7, 7}},
		locked{client: 0, start: 8 + handDelay, end: 9 + handDelay, kind: Read, opened: 2},
	)},
	{"its session was lost, and what it had stays for the lock delay, also when it is released through another descriptor", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 3}},
		{client: 0, start: 3, end: 4, kind: Posix, mode: WriteLock, in: Range{2, 4}, opened: 2, errno: again},
		{client: 0, start: 5, end: 6, kind: Posix, in: Range{0, 3}, opened: 2},
		{client: 2, start: 7, end: 8, kind: Posix, mode: WriteLock, in: Range{0, 3}, errno: again},
	}},
	{"its session was lost, and what it has in the next one goes as it closes the file", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 3}},
		{client: 0, start: 3, end: 4, kind: Posix, mode: WriteLock, in: Range{7, 7}, opened: 2},
		{client: 0, start: 5, end: 6, kind: Read, errno: lost},
		{client: 0, start: 7, end: 8, kind: Close},
		{client: 2, start: 9, end: 10, kind: Posix, mode: WriteLock, in: Range{7, 7}},
	}},
	{"what it has is released through another descriptor of the session, and another one is refused it", false, []locked{
		{client: 0, start: 1, end: 2, kind: OFD, mode: WriteLock, in: Range{7, 7}, opened: 2},
		{client: 0, start: 3, end: 4, kind: Posix, mode: WriteLock, in: Range{0, 3}},
		{client: 0, start: 5, end: 6, kind: Posix, in: Range{0, 3}, opened: 2},
		{client: 2, start: 7, end: 8, kind: Posix, mode: WriteLock, in: Range{0, 3}, errno: again},
	}},
	{"what it shows that it had is released through another descriptor, and another one is refused it", false, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 4}},
		{client: 0, start: 3, end: 6, kind: Posix, in: Range{0, 3}, opened: 2},
		{client: 2, start: 7, end: 8, kind: Posix, mode: WriteLock, in: Range{0, 3}, errno: again},
		{client: 0, start: 9, end: 10, kind: Read},
	}},
	{"its session was lost, and it locks through the same descriptor", false, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 3}},
		{client: 2, start: 2 + handDelay, end: 3 + handDelay, kind: Posix, mode: WriteLock, in: Range{0, 0}},
		{client: 0, start: 6 + handDelay, end: 7 + handDelay, kind: Posix, mode: WriteLock, in: Range{2, 3}},
	}},
	{"its session was lost, and it closes the file at once", false, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 0, start: 3, end: 4, kind: Read, errno: lost},
		{client: 0, start: 5, end: 6, kind: Close},
		{client: 2, start: 7, end: 8, kind: Flock, mode: WriteLock},
	}},
	{"it was killed, and another one has the lock at once", true, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 0, start: 3, kind: Close},
		{client: 2, start: 3, end: 4, kind: Flock, mode: WriteLock},
	}},
	{"another one has the lock before it was killed", false, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 0, start: 5, kind: Close},
		{client: 2, start: 3, end: 4, kind: Flock, mode: WriteLock},
	}},
	{"it may not write its pid to what it has locked", false, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 0, start: 3, end: 4, kind: Write, errno: busy},
	}},
	{"the cluster could not be asked in time, and it closes the file at once", true, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 0, start: 3, end: 3 + handTimeout, kind: Read, errno: lost},
		{client: 0, start: 4 + handTimeout, end: 5 + handTimeout, kind: Close},
		{client: 2, start: 4 + handTimeout, end: 5 + handTimeout, kind: Flock, mode: WriteLock},
	}},

	{"what it had when a request was given up goes a lock delay later", true, afterGivingUp(4 + handDelay)},
	{"what it had when a request was given up goes at once", false, afterGivingUp(handDelay - 1)},
	{"the range of the request that was given up goes at once", true, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 7}},
		{client: 0, start: 3, end: 3 + handTimeout, kind: Posix, in: Range{0, 3}, errno: lost},
		{client: 2, start: 4, end: 5, kind: Posix, mode: WriteLock, in: Range{0, 3}},
	}},

	{"an interrupt of who does not wait", false, []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock, errno: interrupted},
	}},
	{"a deadlock that cannot be known", false, []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, wait: true, errno: syscall.EDEADLK},
	}},
}

func seenAs(got LockSeen) []locked {
	return []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: ReadLock, in: Range{2, 3}},
		{client: 1, start: 3, end: 4, kind: TestPosix, mode: WriteLock, in: Range{0, 7}, got: got},
		{client: 0, start: 5, end: 6, kind: Read},
		{client: 1, start: 5, end: 6, kind: Read},
	}
}

func closedBy(kind Kind, then syscall.Errno) []locked {
	return []locked{
		{client: 0, start: 1, end: 2, kind: kind, mode: WriteLock},
		{client: 0, start: 2, end: 3, kind: OFD, mode: WriteLock, in: Range{7, 7}, opened: 2},
		{client: 0, start: 3, end: 4, kind: kind, mode: WriteLock},
		{client: 0, start: 4, end: 5, kind: Close},
		{client: 0, start: 5, end: 6, kind: Read, opened: 2, era: 1},
		{client: 2, start: 7, end: 8, kind: kind, mode: WriteLock, errno: then},
	}
}

// closedInSilence has a process see no lock where another one sees what the first has closed.
func closedInSilence(sees int) []locked {
	return []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 3}},
		{client: 0, start: 3, end: 4, kind: Read, errno: timedOut},
		{client: 0, start: 5, end: 6, kind: Close},
		{client: sees, start: 7, end: 8, kind: TestPosix, mode: ReadLock, in: Range{2, 3}, opened: 2, era: 1 - sees},
		{client: 1, start: 9, end: 10, kind: TestPosix, mode: ReadLock, in: Range{2, 3}, got: LockSeen{Mode: WriteLock, Range: Range{0, 3}, Pid: 100}},
	}
}

// afterLoss has another one get the lock at a time.
func afterLoss(at int64) []locked {
	return []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 2, start: 3, end: 4, kind: Flock, mode: WriteLock, errno: again},
		{client: 2, start: at, end: at + 1, kind: Flock, mode: WriteLock},
	}
}

// inTheNext has a session lost in which something was locked, while something else is locked through another descriptor in the next one,
// and another one get the first.
func inTheNext(then ...locked) []locked {
	return append([]locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{3, 4}},
		{client: 0, start: 3, end: 4, kind: Posix, mode: WriteLock, in: Range{7, 7}, opened: 2},
		{client: 2, start: 4 + handDelay, end: 5 + handDelay, kind: Posix, mode: WriteLock, in: Range{4, 4}},
	}, then...)
}

// testOfOwn has one told of its own lock, through a descriptor: the first is the one by which it has that.
func testOfOwn(opened int) []locked {
	return []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 3}},
		{client: 0, start: 3, end: 4, kind: TestPosix, mode: WriteLock, in: Range{2, 3}, opened: opened, got: LockSeen{WriteLock, Range{0, 3}, 0}},
	}
}

// afterGivingUp has another one get what a request was not about at a time. Another descriptor of the owner is good.
func afterGivingUp(at int64) []locked {
	return []locked{
		{client: 0, start: 1, end: 2, kind: Posix, mode: WriteLock, in: Range{0, 7}},
		{client: 0, start: 3, end: 3 + handTimeout, kind: Posix, in: Range{0, 3}, errno: lost},
		{client: 0, start: 4 + handTimeout, end: 5 + handTimeout, kind: Read, opened: 2},
		{client: 2, start: at, end: at + 1, kind: Posix, mode: WriteLock, in: Range{5, 5}},
	}
}

func TestLockHistories(t *testing.T) {
	for _, l := range lockHistories {
		t.Run(l.name, func(t *testing.T) {
			history := LockHistory{OpTimeout: handTimeout * time.Second, Prompt: handTimeout * time.Second, LockDelay: handDelay * time.Second}
			for i, made := range l.calls {
				history.Calls = append(history.Calls, made.call(i))
			}
			err := history.Check(time.Minute)
			if l.possible {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrImpossible)
		})
	}
}

// TestAnInterruptedWaitWhoseSessionEndedMayHaveHadTheLock: the request became a lock while the host was cut off, and the lock stays
// for the lock delay.
func TestAnInterruptedWaitWhoseSessionEndedMayHaveHadTheLock(t *testing.T) {
	for _, lapsed := range []bool{true, false} {
		h := LockHistory{OpTimeout: handTimeout * time.Second, Prompt: handTimeout * time.Second}
		for i, made := range []locked{
			{client: 0, start: 1, end: 5, kind: OFD, mode: ReadLock, in: Range{0, 3}, wait: true, errno: interrupted},
			{client: 2, start: 3, end: 4, kind: TestOFD, mode: WriteLock, in: Range{2, 2}, got: LockSeen{ReadLock, Range{0, 3}, -1}},
			{client: 2, start: 6, end: 7, kind: OFD, mode: WriteLock, in: Range{3, 3}, errno: again},
			{client: 2, start: 8, end: 9, kind: OFD, mode: WriteLock, in: Range{3, 3}},
		} {
			h.Calls = append(h.Calls, made.call(i))
		}
		h.Calls[0].Lapsed = lapsed
		if err := h.Check(time.Minute); lapsed {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrImpossible)
		}
	}
}
