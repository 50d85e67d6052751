package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// stopGrace is how long a part may take to say farewell to others.
const stopGrace = 3 * time.Second

// parts are what has been started and is to be stopped, in the order in which they were started.
type parts []part

// part is what has been started and is to be stopped.
type part struct {
	name string
	stop func() error
}

// stopIn gives up on a part that takes longer than the limit.
func (p part) stopIn(limit time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- p.stop() }()
	select {
	case err := <-stopped:
		return err
	case <-time.After(limit):
		return errors.New("it hangs")
	}
}

func (p *parts) started(name string, stop func() error) { *p = append(*p, part{name, stop}) }

// stop stops all in reverse, but for what hangs, on a disk that does not answer for instance.
func (p parts) stop(logger *slog.Logger) { p.stopWithin(2*stopGrace, logger) }

// stopWithin gives each part so much time.
func (p parts) stopWithin(limit time.Duration, logger *slog.Logger) {
	for _, part := range slices.Backward(p) {
		if err := part.stopIn(limit); err != nil {
			logger.Warn("did not stop cleanly", "part", part.name, "error", err)
		}
	}
}

func withGrace(stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return stop(ctx)
}
