package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"lockfs/formats/pause"
)

// patience is the delay before a command prints its wait.
const patience = time.Second

// Waiting prints a message on a terminal if the command takes longer than a second. The caller calls over at
// the end.
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
			<-told // not within later output
		}
	}
}

// WaitingFor is Waiting with a message that is updated each second. over ends the context of howFar.
func WaitingFor(ctx context.Context, w io.Writer, howFar func(context.Context) string) (over func()) {
	if !IsTerminal(w) {
		return func() {}
	}
	return waitingFor(ctx, w, patience, howFar)
}

func waitingFor(ctx context.Context, w io.Writer, interval time.Duration, howFar func(context.Context) string) (over func()) {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		shown := ""
		for pause.For(ctx, interval) == nil {
			line := "lockfs: " + howFar(ctx)
			if ctx.Err() != nil {
				break
			}
			fmt.Fprintf(w, "\r%s%s", line, strings.Repeat(" ", max(0, len(shown)-len(line))))
			shown = line
		}
		if shown != "" {
			fmt.Fprintln(w)
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}
