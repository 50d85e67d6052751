package cli

import (
	"fmt"
	"io"
	"time"
)

// patience is how long a command may take until it says what it waits for.
const patience = time.Second

// Waiting tells people what a command is about, once that has taken a second; what is no terminal is told nothing. It is to be called
// when it is over.
func Waiting(w io.Writer, format string, args ...any) (over func()) {
	if !IsTerminal(w) {
		return func() {}
	}
	return waiting(w, patience, fmt.Sprintf(format, args...))
}

func waiting(w io.Writer, patience time.Duration, what string) (over func()) {
	told := make(chan struct{})
	timer := time.AfterFunc(patience, func() {
		defer close(told)
		fmt.Fprintf(w, "lockfs: %s ...\n", what)
	})
	return func() {
		if !timer.Stop() {
			<-told // not in the midst of what follows
		}
	}
}
