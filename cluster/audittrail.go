package cluster

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"lockfs/cluster/audit"
	"lockfs/cluster/consensus"
	"lockfs/formats/pause"
	"lockfs/raftstore"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// The audit trail of a node is a file in its data directory, some files that were rotated, and no more.
const (
	auditSize  = 64 << 20
	auditKept  = 4
	auditBatch = 1000
	auditRetry = time.Second // after an error, such as a full disk
	// auditDelay is for how long more events are waited for: where locks come and go, to write each by itself has a thread woken for each on
	// every server.
	auditDelay = 20 * time.Millisecond
)

// auditTrail appends the events that this node applies to its audit file.
type auditTrail struct {
	log     *audit.Log
	fsm     *raftstore.FSM
	logger  *slog.Logger
	writing sync.WaitGroup
}

// openAuditTrail goes on with that of a data directory until the context ends. What was not written when the process ended is
// written by the next one: the state keeps the last events.
func openAuditTrail(ctx context.Context, dir string, fsm *raftstore.FSM, logger *slog.Logger) (*auditTrail, error) {
	log, err := audit.Open(audit.Config{
		Path: filepath.Join(dir, consensus.AuditFile), MaxSize: auditSize, Keep: auditKept, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	t := &auditTrail{log: log, fsm: fsm, logger: logger}
	t.writing.Go(func() { t.write(ctx) })
	return t, nil
}

func (t *auditTrail) write(ctx context.Context) {
	for {
		events, err := t.next(ctx)
		if len(events) > 0 {
			err = errors.Join(t.log.Append(auditLines(events)), err)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.logger.Error("events cannot be written; trying again", "file", consensus.AuditFile, "error", err)
			_ = pause.For(ctx, auditRetry)
		}
	}
}

// next waits for events, and a little for more. Those that came before an error are answered with it: of a state that is not to be used any more,
// nobody can ask for them later.
func (t *auditTrail) next(ctx context.Context) (events []*storepb.Event, err error) {
	last := t.log.Last()
	take := func(ns *namespace.Namespace) int {
		more := ns.Events(last, auditBatch-len(events))
		if len(more) > 0 {
			last = more[len(more)-1].GetNumber()
		}
		events = append(events, more...)
		return len(events)
	}
	if err := t.fsm.WaitFor(ctx, func(ns *namespace.Namespace) bool { return take(ns) > 0 }); err != nil {
		return nil, err
	}
	delay, cancel := context.WithTimeout(ctx, auditDelay)
	defer cancel()
	err = t.fsm.WaitFor(delay, func(ns *namespace.Namespace) bool { return take(ns) == auditBatch })
	if delay.Err() != nil {
		err = nil
	}
	return events, err
}

// close is called once the context has ended and nothing more is applied.
func (t *auditTrail) close() error {
	t.writing.Wait()
	return t.log.Close()
}

func auditLines(events []*storepb.Event) []audit.Line {
	lines := make([]audit.Line, len(events))
	for i, event := range events {
		lines[i] = audit.Line{Number: event.GetNumber(), JSON: lockjson.EventLine(event)}
	}
	return lines
}
