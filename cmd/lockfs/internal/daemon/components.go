package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// stopGrace is the time limit for stopping a part.
const stopGrace = 3 * time.Second

// parts are the started parts of a daemon, in their order.
type parts []part

// part has been started and has to be stopped.
type part struct {
	name string
	stop func() error
}

// stopBy stops a part, and returns at the deadline at the latest.
func (p part) stopBy(until time.Time, logger *slog.Logger) {
	stopped := make(chan error, 1)
	go func() { stopped <- p.stop() }()
	var err error
	select {
	case err = <-stopped:
	case <-time.After(time.Until(until)):
		err = errors.New("it hangs")
	}
	if err != nil {
		logger.Warn("did not stop cleanly", "part", p.name, "error", err)
	}
}

func (p *parts) started(name string, stop func() error) { *p = append(*p, part{name, stop}) }

// stop stops all parts in reverse order, and skips a part that hangs, for example on a disk.
func (p parts) stop(logger *slog.Logger) {
	for _, part := range slices.Backward(p) {
		part.stopBy(time.Now().Add(2*stopGrace), logger)
	}
}

// stopSoon is stop with a time limit for all parts but the first, on which they depend, and the same limit
// for the first.
func (p parts) stopSoon(limit time.Duration, logger *slog.Logger) {
	until := time.Now().Add(limit)
	for i, part := range slices.Backward(p) {
		if i == 0 {
			until = time.Now().Add(limit)
		}
		part.stopBy(until, logger)
	}
}

func withGrace(stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return stop(ctx)
}
