package worker

// message is one byte between front and worker.
type message byte

const (
	mayKeep message = iota + 1 // worker: a lock was acquired, is the front still there?
	keep                       // front: it is
	running                    // worker: a command runs under the lock; it decides when to end
	ended                      // worker: that command has ended
	exits                      // worker: the next byte is its exit code
	waits                      // worker: the next byte is the exit code of a wait that was too long, the next 8 bytes its limit in nanoseconds
)
