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

// backupRetry is the pause after a failed backup, unless one is due sooner.
const backupRetry = time.Minute

// backupSchedule makes a node's periodic backups.
type backupSchedule struct {
	ctx     context.Context // ends when the node is closed
	series  backup.Series
	every   time.Duration
	begin   func(context.Context) (func(io.Writer) error, error)
	metrics *Metrics
	logger  *slog.Logger

	started sync.Once
	failure atomic.Pointer[string] // of the last attempt; nil: it succeeded, or none was due yet
}

// start starts the schedule, once, if there is a directory.
func (s *backupSchedule) start() {
	if s.series.Dir != "" {
		s.started.Do(func() { go s.run() })
	}
}

// run makes a backup whenever the last one, also of an earlier process, is old enough.
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
