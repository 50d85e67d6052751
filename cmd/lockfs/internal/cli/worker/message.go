package worker

// message is one byte between front and worker.
type message byte

const (
	mayKeep message = iota + 1 // worker: a lock was acquired; asks whether the front is still there
	keep                       // front: yes
	running                    // worker: a command runs under the lock and receives the signals
	ended                      // worker: the command has ended
	exits                      // worker: the next byte is its exit code
	waits                      // worker: the next byte is the exit code for a timeout, the next 8 bytes are the limit in nanoseconds
)
