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

// backupSchedule are those that a node makes by itself.
type backupSchedule struct {
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
func (s *backupSchedule) start() {
	if s.series.Dir != "" {
		s.started.Do(func() { go s.run() })
	}
}

// run makes a backup whenever one is due. What counts is when the last one was made, also by an earlier process.
func (s *backupSchedule) run() {
	for s.ctx.Err() == nil {
		last, err := s.series.Last(time.Now())
		if !last.IsZero() {
			s.metrics.lastBackup.Set(float64(last.Unix()))
		}
		if wait := s.every - time.Since(last); err == nil && wait > 0 {
			_ = pause.For(s.ctx, wait)
			continue
		}
		if err == nil {
			err = s.make()
		}
		if err == nil || s.ctx.Err() != nil {
			continue
		}
		s.logger.Error("no backup was made; trying again", "dir", s.series.Dir, "error", err)
		s.metrics.backups.WithLabelValues("failed").Inc()
		failure := err.Error()
		s.failure.Store(&failure)
		_ = pause.For(s.ctx, min(backupRetry, s.every))
	}
}

func (s *backupSchedule) make() error {
	write, err := s.begin(s.ctx)
	if err != nil {
		return err
	}
	made, err := s.series.Add(time.Now(), write)
	if err != nil {
		return err
	}
	s.logger.Info("backup made", "file", made.Path, "index", made.Header.Index, "removed", made.Removed)
	s.metrics.backups.WithLabelValues("ok").Inc()
	s.failure.Store(nil)
	return nil
}
