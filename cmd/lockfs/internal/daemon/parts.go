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

// stopBy gives up on a part that takes longer.
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

// stop stops all in reverse, but for what hangs, on a disk that does not answer for instance.
func (p parts) stop(logger *slog.Logger) {
	for _, part := range slices.Backward(p) {
		part.stopBy(time.Now().Add(2*stopGrace), logger)
	}
}

// stopSoon has so much time for all but the first, which they rely on, and as much for that. What remains when it is over is not waited for.
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
