package cluster

import (
	"time"

	"lockfs/cluster/backup"
	"lockfs/formats/pause"
)

// backupRetry is after how long a backup is tried again that failed, unless one is due sooner.
const backupRetry = time.Minute

// makeBackups makes backups by itself until the node is closed. What counts is when the last one was made, also by an earlier process.
func (n *Node) makeBackups() {
	series := &backup.Series{Dir: n.cfg.BackupDir, Node: n.cfg.Name, Keep: n.cfg.BackupKeep}
	for n.ctx.Err() == nil {
		last, err := series.Last(time.Now())
		if !last.IsZero() {
			n.cfg.Metrics.lastBackup.Set(float64(last.Unix()))
		}
		if wait := n.cfg.BackupEvery - time.Since(last); err == nil && wait > 0 {
			_ = pause.For(n.ctx, wait)
			continue
		}
		if err == nil {
			err = n.makeBackup(series)
		}
		if err == nil || n.ctx.Err() != nil {
			continue
		}
		n.logger.Error("no backup was made; trying again", "dir", n.cfg.BackupDir, "error", err)
		n.cfg.Metrics.backups.WithLabelValues("failed").Inc()
		failure := err.Error()
		n.backupFailure.Store(&failure)
		_ = pause.For(n.ctx, min(backupRetry, n.cfg.BackupEvery))
	}
}

func (n *Node) makeBackup(series *backup.Series) error {
	write, err := n.writeBackup(n.ctx)
	if err != nil {
		return err
	}
	made, err := series.Add(time.Now(), write)
	if err != nil {
		return err
	}
	n.logger.Info("backup made", "file", made.Path, "index", made.Header.Index, "removed", made.Removed)
	n.cfg.Metrics.backups.WithLabelValues("ok").Inc()
	n.backupFailure.Store(nil)
	return nil
}
