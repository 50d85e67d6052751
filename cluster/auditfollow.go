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

// Each audit file of a node is in its data directory, with some files that were rotated, and no more.
const (
	auditSize  = 64 << 20
	someSize   = 16 << 20 // of the files with events of one class
	auditKept  = 4
	auditBatch = 1000
	auditRetry = time.Second // after an error, such as a full disk
	// auditDelay is for how long more events are waited for: where locks come and go, to write each by itself has a thread woken for each on
	// every server.
	auditDelay = 20 * time.Millisecond
)

// auditFollower appends the events that this node applies to its audit files: all of them to one, and those of administrators and of refusals
// to one more each. So lock events, of which any user can make many, push out only lock events.
type auditFollower struct {
	fsm     *raftstore.FSM
	logger  *slog.Logger
	logs    []*audit.Log
	writing sync.WaitGroup
}

// openAuditFollower goes on with that of a data directory until the context ends. What was not written when the process ended is
// written by the next one: the state keeps the last events.
func openAuditFollower(ctx context.Context, dir string, fsm *raftstore.FSM, logger *slog.Logger) (*auditFollower, error) {
	t := &auditFollower{fsm: fsm, logger: logger}
	ofClass := func(class namespace.EventClass) eventSource {
		return func(ns *namespace.Namespace, after uint64, limit int) []*storepb.Event {
			return ns.EventsOf(class, after, limit)
		}
	}
	for _, file := range []struct {
		name   string
		size   int64
		events eventSource
	}{
		{consensus.AuditFile, auditSize, unbrokenEvents},
		{consensus.AdminAuditFile, someSize, ofClass(namespace.AdministrationEvents)},
		{consensus.RefusalsAuditFile, someSize, ofClass(namespace.RefusalEvents)},
	} {
		log, err := audit.Open(audit.Config{
			Path: filepath.Join(dir, file.name), MaxSize: file.size, Keep: auditKept, Some: file.name != consensus.AuditFile, Logger: logger,
		})
		if err != nil {
			return nil, errors.Join(err, t.closeLogs())
		}
		t.logs = append(t.logs, log)
		t.writing.Go(func() { t.write(ctx, &auditFile{log: log, name: file.name, events: file.events}) })
	}
	return t, nil
}

// eventSource returns the events for a file after one, so many at most.
type eventSource func(ns *namespace.Namespace, after uint64, limit int) []*storepb.Event

// unbrokenEvents leaves out old events between which others are not kept any more: the chain would be broken before each.
func unbrokenEvents(ns *namespace.Namespace, after uint64, limit int) []*storepb.Event {
	events := ns.Events(after, limit)
	next := after + 1
	for _, e := range events {
		if e.GetNumber() != next {
			if whole := ns.EventsWholeFrom(); whole > e.GetNumber() {
				return ns.Events(whole-1, limit)
			}
		}
		next = e.GetNumber() + 1
	}
	return events
}

// auditFile is one of the files and the events that are for it.
type auditFile struct {
	log    *audit.Log
	name   string
	events eventSource
}

func (f *auditFollower) write(ctx context.Context, file *auditFile) {
	for {
		events, err := f.next(ctx, file)
		if len(events) > 0 {
			err = errors.Join(file.log.Append(auditLines(events)), err)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.logger.Error("events cannot be written; trying again", "file", file.name, "error", err)
			_ = pause.For(ctx, auditRetry)
		}
	}
}

// next waits for events, and a little for more. Those that came before an error are answered with it: of a state that is not to be used any more,
// nobody can ask for them later.
func (f *auditFollower) next(ctx context.Context, file *auditFile) (events []*storepb.Event, err error) {
	last := file.log.Last()
	take := func(ns *namespace.Namespace) int {
		more := file.events(ns, last, auditBatch-len(events))
		if len(more) > 0 {
			last = more[len(more)-1].GetNumber()
		}
		events = append(events, more...)
		return len(events)
	}
	if err := f.fsm.WaitFor(ctx, func(ns *namespace.Namespace) bool { return take(ns) > 0 }); err != nil {
		return nil, err
	}
	delay, cancel := context.WithTimeout(ctx, auditDelay)
	defer cancel()
	err = f.fsm.WaitFor(delay, func(ns *namespace.Namespace) bool { return take(ns) == auditBatch })
	if delay.Err() != nil {
		err = nil
	}
	return events, err
}

// close is called once the context has ended and nothing more is applied.
func (f *auditFollower) close() error {
	f.writing.Wait()
	return f.closeLogs()
}

func (f *auditFollower) closeLogs() (err error) {
	for _, log := range f.logs {
		err = errors.Join(err, log.Close())
	}
	return err
}

func auditLines(events []*storepb.Event) []audit.Line {
	lines := make([]audit.Line, len(events))
	for i, event := range events {
		lines[i] = audit.Line{Number: event.GetNumber(), JSON: lockjson.EventLine(event)}
	}
	return lines
}
