package cluster

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/backup"
	"lockfs/formats/pause"
)

// backupRetry is after how long a backup is tried again that failed, unless one is due sooner.
const backupRetry = time.Minute

// ownBackups are those that a node makes by itself.
type ownBackups struct {
	ctx     context.Context // ends when the node is closed
	series  backup.Series
	every   time.Duration
	begin   func(context.Context) (func(io.Writer) error, error)
	metrics *Metrics
	logger  *slog.Logger

	started sync.Once
	failure atomic.Pointer[string] // of the last one; nil: it was made, or none is due yet
}

// start begins with it, once, if there is a directory for them.
func (o *ownBackups) start() {
	if o.series.Dir != "" {
		o.started.Do(func() { go o.run() })
	}
}

// run makes a backup whenever one is due. What counts is when the last one was made, also by an earlier process.
func (o *ownBackups) run() {
	for o.ctx.Err() == nil {
		last, err := o.series.Last(time.Now())
		if !last.IsZero() {
			o.metrics.lastBackup.Set(float64(last.Unix()))
		}
		if wait := o.every - time.Since(last); err == nil && wait > 0 {
			_ = pause.For(o.ctx, wait)
			continue
		}
		if err == nil {
			err = o.make()
		}
		if err == nil || o.ctx.Err() != nil {
			continue
		}
		o.logger.Error("no backup was made; trying again", "dir", o.series.Dir, "error", err)
		o.metrics.backups.WithLabelValues("failed").Inc()
		failure := err.Error()
		o.failure.Store(&failure)
		_ = pause.For(o.ctx, min(backupRetry, o.every))
	}
}

func (o *ownBackups) make() error {
	write, err := o.begin(o.ctx)
	if err != nil {
		return err
	}
	made, err := o.series.Add(time.Now(), write)
	if err != nil {
		return err
	}
	o.logger.Info("backup made", "file", made.Path, "index", made.Header.Index, "removed", made.Removed)
	o.metrics.backups.WithLabelValues("ok").Inc()
	o.failure.Store(nil)
	return nil
}
