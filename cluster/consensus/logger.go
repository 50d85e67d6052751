package consensus

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

var _ hclog.SinkAdapter = slogSink{}

// slogSink passes raft's messages of a level or above to slog.
type slogSink struct {
	logger *slog.Logger
	least  slog.Level
}

func (s slogSink) Accept(name string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelInfo
	switch level {
	case hclog.Trace, hclog.Debug:
		to = slog.LevelDebug
	case hclog.Warn:
		to = slog.LevelWarn
	case hclog.Error:
		to = slog.LevelError
	}
	if to < s.least {
		return
	}
	attrs := []any{"component", name}
	for _, arg := range args {
		if format, ok := arg.(hclog.Format); ok && len(format) > 0 {
			arg = fmt.Sprintf(fmt.Sprint(format[0]), format[1:]...)
		}
		attrs = append(attrs, arg)
	}
	s.logger.Log(context.Background(), to, msg, attrs...)
}

// raftLogger returns a logger for raft.
func raftLogger(logger *slog.Logger, least slog.Level) hclog.Logger {
	intercept := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Output: io.Discard, Level: hclog.Off})
	intercept.RegisterSink(slogSink{logger, least})
	return intercept
}
