package session

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// beginWait notes a request before it is sent.
func (j *journal) beginWait(session ids.Session, seq ids.Sequence, op *storepb.TakeLock) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n, last := j.waiting.next, len(j.waiting.free)-1
	switch {
	case last >= 0:
		n, j.waiting.free = j.waiting.free[last], j.waiting.free[:last]
	case n < mostWaits:
		j.waiting.next++
	default:
		j.word(journalWaits).Store(1)
		return
	}
	if j.waiting.slots == nil {
		j.waiting.slots = make(map[callNumber]int)
	}
	j.waiting.slots[callNumber{session, seq}] = n
	at := journalWaits + 8 + n*waitSlot
	for i, word := range []uint64{
		uint64(session), 0, op.GetIno(), op.GetOwner(), op.GetStart(), op.GetEnd(), uint64(op.GetKind()) | uint64(op.GetType())<<32,
	} {
		j.word(at + 8*i).Store(word)
	}
	j.word(at + 8).Store(uint64(seq))
}

// endWait strikes a request off that does not wait any more.
func (j *journal) endWait(session ids.Session, seq ids.Sequence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n, found := j.waiting.slots[callNumber{session, seq}]; found {
		delete(j.waiting.slots, callNumber{session, seq})
		j.waiting.free = append(j.waiting.free, n)
		j.word(journalWaits + 8 + n*waitSlot + 8).Store(0)
	}
}

// readWaits answers what an earlier process has noted. Its slots stay taken until they are struck off.
func (j *journal) readWaits() (left []*storepb.AwaitLock) {
	for n := range mostWaits {
		at := journalWaits + 8 + n*waitSlot
		if seq := j.word(at + 8).Load(); seq != 0 {
			left = append(left, &storepb.AwaitLock{
				Session: j.word(at).Load(), Seq: seq, Ino: j.word(at + 16).Load(), Owner: j.word(at + 24).Load(),
				Start: j.word(at + 32).Load(), End: j.word(at + 40).Load(),
				Kind: storepb.LockKind(uint32(j.word(at + 48).Load())), Type: storepb.LockType(j.word(at+48).Load() >> 32),
			})
		}
	}
	return left
}

// adoptWaits goes on with the slots that an earlier process has taken.
func (j *journal) adoptWaits() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = waitSlots{slots: make(map[callNumber]int), next: mostWaits}
	for n := range mostWaits {
		at := journalWaits + 8 + n*waitSlot
		if seq := j.word(at + 8).Load(); seq != 0 {
			j.waiting.slots[callNumber{ids.Session(j.word(at).Load()), ids.Sequence(seq)}] = n
		} else {
			j.waiting.free = append(j.waiting.free, n)
		}
	}
}

// lacksWaits tells whether there was no room for one.
func (j *journal) lacksWaits() bool { return j.word(journalWaits).Load() != 0 }

// clearWaits is for a journal of which none waits any more.
func (j *journal) clearWaits() { clear(j.data[journalWaits : journalWaits+8+mostWaits*waitSlot]) }
