package lease

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// ticket needs the mutex.
func (c *Cache) ticket(holder Holder, question string, now time.Duration) Ticket {
	t := Ticket{question: question, holder: holder, Position: c.drops.position, Sent: now}
	if holder == c.holder {
		t.Retired = c.retired
	}
	return t
}

// Ask records a question. The mount wants a lease if the same question was asked a short while ago.
func (c *Cache) Ask(holder Holder, question string, now time.Duration) (ticket Ticket, wants bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, found := c.asked[question]
	c.noteQuestion(question, now)
	return c.ticket(holder, question, now), holder.Session != 0 && found && now-before < askedAge
}

// Change drops the inodes which the mount is about to change, before each attempt to send a command. It
// returns the questions with used and dropped answers: they may come again.
func (c *Cache) Change(holder Holder, now time.Duration, inodes ...ids.Inode) (ticket Ticket, again []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ino := range inodes {
		for question := range c.byInode[ino] {
			if c.answers[question].isUsed && !slices.Contains(again, question) {
				again = append(again, question)
			}
		}
	}
	c.drop(inodes)
	ticket = c.ticket(holder, "", now)
	ticket.isCommand = true
	return ticket, again
}

// Changing is called when a command begins, and Changed at its end.
func (c *Cache) Changing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changing++
}

// Changed ends Changing.
func (c *Cache) Changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changing--
}

// MaxWithCommand limits the questions and the dropped inodes of a command.
const MaxWithCommand = 8

// ForCreated completes a question sent with a command, by its result: inode 0 stands for the inode of the
// result, and a read gets the name used by the command, as in a later open. Other questions stay as they are.
func ForCreated(question *storepb.Query, result *storepb.Result) *storepb.Query {
	ino := result.GetAttr().GetIno()
	switch q := question.GetQuery().(type) {
	case *storepb.Query_GetAttr:
		if q.GetAttr.GetIno() == 0 {
			return &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: ino}}}
		}
	case *storepb.Query_Read:
		if q.Read.GetIno() == 0 {
			read := &storepb.Read{Ino: ino}
			if seen := result.GetObservations(); len(seen) > 0 {
				read.Name = seen[0]
			}
			return &storepb.Query{Query: &storepb.Query_Read{Read: read}}
		}
	}
	return question
}
