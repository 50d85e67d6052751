package session

import (
	"context"
	"errors"
	"os"
	"slices"
)

// HandOver lets go of the session without ending it, and answers the session file, with which another process opens a client that goes on
// with it (Config.Inherited): nothing that was opened or locked in it is lost. Nothing may be asked of the client meanwhile or
// afterwards. It is done once no call is under way; if that does not come to be until ctx ends, the client goes on.
func (c *Client) HandOver(ctx context.Context) (*os.File, error) {
	if c.journal.file == nil {
		return nil, errors.New("there is no session file to hand over")
	}
	var taken []int
	for range inFlight {
		select {
		case slot := <-c.slots:
			taken = append(taken, slot)
		case <-ctx.Done():
			for slot := range slices.Values(taken) {
				c.slots <- slot
			}
			return nil, errors.New("calls are under way")
		}
	}
	c.rest()
	<-c.stopped
	c.cancel()
	c.settling.Wait()
	err := c.holders.close()
	if c.peers != nil {
		c.peers.Close()
	}
	if err != nil {
		c.logger.Warn("processes were not watched to the end; the next process asks for them", "error", err)
	}
	return c.journal.file, nil
}

// inherit goes on with the session of the process before this one, which had nothing under way.
func (c *Client) inherit(journalFile *os.File) (*clientSession, error) {
	c.journal = &journal{file: journalFile}
	if err := c.journal.mapFile(); err != nil {
		return nil, err
	}
	left := c.journal.read(c.bootID)
	if left.session == 0 || len(left.pending) > 0 {
		return nil, errors.New("the session file was not handed over")
	}
	c.cluster = &affiliation{id: left.cluster, moved: c.moved, logger: c.logger}
	kept := c.journal.keepPromises()
	for range inFlight {
		if slot := <-c.slots; !kept[slot] {
			c.slots <- slot
		}
	}
	for slot := range kept { // they are used last
		c.slots <- slot
	}
	return &clientSession{id: left.session, numbers: newNumbers(left.last)}, nil
}
