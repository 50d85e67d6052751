package hosts

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// output keeps what a process writes and wakes those who wait for some of it.
type output struct {
	mu      sync.Mutex
	all     bytes.Buffer // both streams, in the order in which they arrived
	stdout  bytes.Buffer
	changed chan struct{} // closed and replaced when more has come
	readers sync.WaitGroup
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

// read collects one stream until all who can write to it are gone.
func (o *output) read(from io.ReadCloser, isStdout bool) {
	o.readers.Add(1)
	go func() {
		defer o.readers.Done()
		defer from.Close()
		chunk := make([]byte, 32<<10)
		for {
			n, err := from.Read(chunk)
			o.add(chunk[:n], isStdout)
			if err != nil {
				return
			}
		}
	}()
}

func (o *output) add(chunk []byte, isStdout bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Write(chunk)
	if isStdout {
		o.stdout.Write(chunk)
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// text returns all that has been written, and a channel that closes when more has.
func (o *output) text() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String(), o.changed
}

func (o *output) stdoutText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stdout.String()
}

// outputGrace is how long output is waited for that a process left running by
// the one that ended may still write.
const outputGrace = time.Second

// awaitEnd waits until all has been read that a process wrote which has ended.
func (o *output) awaitEnd() {
	complete := make(chan struct{})
	go func() {
		o.readers.Wait()
		close(complete)
	}()
	select {
	case <-complete:
	case <-time.After(outputGrace):
	}
}
