package setup

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// patience is the delay before a step prints its wait.
const patience = time.Second

// report prints the steps.
type report struct {
	w io.Writer

	mu      sync.Mutex
	changed bool // a step changed something
}

// title prints the purpose of all steps.
func (r *report) title(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "lockfs: "+format+"\n", args...)
}

// did prints a step with a change.
func (r *report) did(what, format string, args ...any) {
	r.changed = true
	r.is(what, format, args...)
}

// is prints a step without a change.
func (r *report) is(what, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "  %-9s %s\n", what, fmt.Sprintf(format, args...))
}

// waits prints a message if the step takes long. The caller calls over at the end of the step.
func (r *report) waits(format string, args ...any) (over func()) {
	timer := time.AfterFunc(patience, func() { r.is("waiting", format, args...) })
	return func() { timer.Stop() }
}
