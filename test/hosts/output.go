package hosts

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// output keeps the output of a process and wakes its waiters.
type output struct {
	mu      sync.Mutex
	all     bytes.Buffer // both streams in order of arrival
	stdout  bytes.Buffer
	changed chan struct{} // closed and replaced after each arrival
	readers sync.WaitGroup
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

// read collects one stream until all its writers have ended.
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

// text returns the output so far, and a channel that closes when there is more.
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

// outputGrace limits the wait for the output of child processes after the end of a process.
const outputGrace = time.Second

// awaitEnd waits until the output of an ended process has been read.
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
