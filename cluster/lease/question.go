package lease

import (
	"slices"
	"time"

	"lockfs/raftstore/ids"
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

// Change drops the inodes that the mount is about to change, before each attempt to send a command. It returns the questions whose answers
// were used and dropped: they may come again.
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
