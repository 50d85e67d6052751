package setup

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// patience is how long a step may take before it is said what it waits for.
const patience = time.Second

// report tells people step by step what was done.
type report struct {
	w io.Writer

	mu      sync.Mutex
	changed bool // something was not as it should be
}

// title is what all steps are for.
func (r *report) title(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "lockfs: "+format+"\n", args...)
}

// did tells of a step that changed something.
func (r *report) did(what, format string, args ...any) {
	r.changed = true
	r.is(what, format, args...)
}

// is tells of a step that found all as it should be.
func (r *report) is(what, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "  %-9s %s\n", what, fmt.Sprintf(format, args...))
}

// waits says what a step waits for, if it takes long. It is to be called when the step is over.
func (r *report) waits(format string, args ...any) (over func()) {
	timer := time.AfterFunc(patience, func() { r.is("waiting", format, args...) })
	return func() { timer.Stop() }
}
