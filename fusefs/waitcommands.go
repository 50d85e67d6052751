package fusefs

import (
	"context"
	"sync"

	"lockfs/raftstore/hostinfo"
)

// commandsPerUser limits the commands for lock waits of one user that are under way.
const commandsPerUser = 64

// waitCommands leave room for other users in the mount's commands. A wait for a lock counts as no call, but
// its begin and its interruption are commands, and programs may repeat them in thousands of threads. Further
// commands wait for their turn.
type waitCommands struct {
	mu    sync.Mutex
	users map[uint32]*commandTurns
}

type commandTurns struct {
	uses  int
	turns chan struct{} // one element for each command under way
}

func newWaitCommands() *waitCommands { return &waitCommands{users: make(map[uint32]*commandTurns)} }

// begin waits for a turn of a user, until ctx ends or interrupted is closed. Then it returns nil.
func (w *waitCommands) begin(ctx context.Context, interrupted <-chan struct{}, uid uint32) (end func()) {
	uid = hostinfo.BudgetUID(uid)
	user := w.use(uid)
	select {
	case user.turns <- struct{}{}:
		return func() {
			<-user.turns
			w.endUse(uid, user)
		}
	case <-ctx.Done():
	case <-interrupted:
	}
	w.endUse(uid, user)
	return nil
}

func (w *waitCommands) use(uid uint32) *commandTurns {
	w.mu.Lock()
	defer w.mu.Unlock()
	user := w.users[uid]
	if user == nil {
		user = &commandTurns{turns: make(chan struct{}, commandsPerUser)}
		w.users[uid] = user
	}
	user.uses++
	return user
}

func (w *waitCommands) endUse(uid uint32, user *commandTurns) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if user.uses--; user.uses == 0 {
		delete(w.users, uid)
	}
}
