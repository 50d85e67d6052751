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

// Limits of each audit file. Rotated files stay beside it in the data directory.
const (
	auditSize  = 64 << 20
	someSize   = 16 << 20 // of the files with events of one class
	auditKept  = 4
	auditBatch = 1000
	auditRetry = time.Second // after an error, such as a full disk
	// auditDelay is a wait for more events: single writes would wake a thread on every server for each
	// lock.
	auditDelay = 20 * time.Millisecond
)

// auditFollower appends applied events to audit files: all of them to one, and those of administrators
// and of refusals to one more each. So lock events, which any user can cause, rotate out only lock
// events.
type auditFollower struct {
	fsm     *raftstore.FSM
	logger  *slog.Logger
	logs    []*audit.Log
	writing sync.WaitGroup
}

// openAuditFollower continues the audit files of a data directory until ctx ends. The state keeps the
// last events, so a new process writes those missed by the previous one.
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

// eventSource returns the events for a file after one, up to a limit.
type eventSource func(ns *namespace.Namespace, after uint64, limit int) []*storepb.Event

// unbrokenEvents leaves out old events with gaps between them, which would break the chain.
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

// auditFile is one of the files, with the source of its events.
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

// next waits for events, and a little longer for more. It returns events along with an error: after a
// failure of the state nothing could fetch them again.
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

// close is called after ctx has ended and nothing more is applied.
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
