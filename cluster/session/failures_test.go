package session

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAQuestionThatIsNotAnsweredIsLogged once, and once more when it is answered.
func TestAQuestionThatIsNotAnsweredIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := failures{what: "waits for locks", logger: slog.New(slog.NewTextHandler(&log, nil))}
		lines := func() int { return strings.Count(log.String(), "\n") }
		fail := func(times int) {
			for range times {
				f.note(errors.New("no leader"))
				time.Sleep(time.Second)
			}
		}
		fail(4)
		f.end()
		require.Zero(t, lines(), "%s", &log)
		fail(20)
		require.Equal(t, 1, lines(), "%s", &log)
		require.Contains(t, log.String(), "no leader")
		f.end()
		require.Equal(t, 2, lines(), "%s", &log)
		f.end()
		require.Equal(t, 2, lines(), "%s", &log)
	})
}
