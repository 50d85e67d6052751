package session

import (
	"fmt"
	"os"
)

// FinishAnswers outlives the process of a mount for a moment, as a process of its own: when ended returns, because
// that process has, it has the answers finished that were on their way. A creation that was struck off
// the journal is so told to its caller even if the process was killed in between. It shares the open
// journal and the open /dev/fuse with the process; the mount's end, and a successor's start, wait for it.
func FinishAnswers(ended func() error, journalFile *os.File, finish func(answers [][]byte)) error {
	j := &journal{file: journalFile}
	if err := j.mapFile(); err != nil {
		return fmt.Errorf("session file: %w", err)
	}
	if err := ended(); err != nil {
		return fmt.Errorf("wait for the end of the mount's process: %w", err)
	}
	answers, slots := j.promises()
	finish(answers)
	for _, slot := range slots {
		j.end(slot)
	}
	return nil
}

// Answers are those that a [FinishAnswers] would have finished now. A process that leaves can do it itself once the client is closed.
func (c *Client) Answers() [][]byte {
	answers, _ := c.journal.promises()
	return answers
}

// SessionFile is the open journal, to be shared with a [FinishAnswers]; nil without one.
func (c *Client) SessionFile() *os.File { return c.journal.file }
