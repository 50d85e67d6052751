package session

import (
	"log/slog"
	"time"
)

// failureWarning is for how long the leader has not answered a question that a mount repeats when the mount logs that.
const failureWarning = 5 * time.Second

// failures has a question that a mount repeats logged once if the leader does not answer it for long, and once more when it does.
type failures struct {
	what   string // the question is about
	logger *slog.Logger

	since    time.Time // zero: the last attempt has not failed
	isLogged bool
}

// note is for an attempt that has failed.
func (f *failures) note(err error) {
	if f.since.IsZero() {
		f.since = time.Now()
	}
	if after := time.Since(f.since); !f.isLogged && after >= failureWarning {
		f.isLogged = true
		f.logger.Warn("the leader does not answer a question of this mount; it is asked again", "about", f.what, "for", after.Round(time.Millisecond), "error", err)
	}
}

// end is for an attempt that was answered.
func (f *failures) end() {
	if f.isLogged {
		f.logger.Info("the leader answers a question of this mount again", "about", f.what, "after", time.Since(f.since).Round(time.Millisecond))
	}
	f.since, f.isLogged = time.Time{}, false
}
