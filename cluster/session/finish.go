package session

import (
	"fmt"
	"os"
)

// FinishAnswers runs in a guard process beside a mount's process. ended returns when the mount's process has
// ended. FinishAnswers then sends the replies which the process had ready. So the caller learns of a creation
// even if the process is killed between the journal entry and the reply. The guard shares the open journal
// and /dev/fuse with the process. The end of the mount and the start of a successor wait for it.
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

// Answers returns the replies which [FinishAnswers] would send now. A closing process can send them after
// Close.
func (c *Client) Answers() [][]byte {
	answers, _ := c.journal.promises()
	return answers
}

// SessionFile returns the open journal, for sharing with [FinishAnswers]; nil: there is none.
func (c *Client) SessionFile() *os.File { return c.journal.file }
