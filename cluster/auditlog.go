package cluster

import (
	"path/filepath"
	"time"

	"lockfs/cluster/audit"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// The audit trail of a node is a file in its data directory, some files that were rotated, and no more.
const (
	auditFile  = "audit.jsonl"
	auditSize  = 64 << 20
	auditKept  = 4
	auditBatch = 1000
	auditRetry = time.Second // after an error, such as a full disk
)

// writeAudit appends the events that this node has applied to its audit file, until the node is closed.
// What was not written when the process ended is written by the next one: the state keeps the last events.
func (n *Node) writeAudit(log *audit.Log) {
	for {
		var events []*storepb.Event
		err := n.fsm.WaitFor(n.ctx, func(ns *namespace.Namespace) bool {
			events = ns.Events(log.Last(), auditBatch)
			return len(events) > 0
		})
		if err == nil {
			err = log.Append(auditLines(events))
		}
		if n.ctx.Err() != nil {
			return
		}
		if err != nil {
			n.logger.Error("events cannot be written; trying again", "file", auditFile, "error", err)
			select {
			case <-time.After(auditRetry):
			case <-n.ctx.Done():
			}
		}
	}
}

func auditLines(events []*storepb.Event) []audit.Line {
	lines := make([]audit.Line, len(events))
	for i, event := range events {
		lines[i] = audit.Line{Number: event.GetNumber(), JSON: lockjson.EventLine(event)}
	}
	return lines
}

func (n *Node) startAudit() error {
	log, err := audit.Open(audit.Config{
		Path: filepath.Join(n.cfg.DataDir, auditFile), MaxSize: auditSize, Keep: auditKept, Logger: n.logger,
	})
	if err != nil {
		return err
	}
	n.audit = log
	n.auditing.Go(func() { n.writeAudit(log) })
	return nil
}

// closeAudit is called once the node's context has ended and it applies nothing more.
func (n *Node) closeAudit() error {
	if n.audit == nil {
		return nil
	}
	n.auditing.Wait()
	return n.audit.Close()
}
