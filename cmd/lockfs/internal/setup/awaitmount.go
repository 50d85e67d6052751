package setup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
)

// remark is how often it is said, while it is waited for the mount, what the daemon says.
const remark = 5 * time.Second

// awaitMount waits until a majority of the servers does what is asked for on the mount.
func (h *host) awaitMount(ctx context.Context, r *report, daemon service, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	began, said, last := time.Now(), "", time.Now()
	for {
		err := probe(ctx, h.mount, h.name)
		if err == nil {
			r.is("mount", "%s works", h.mount)
			return nil
		}
		if running, failed := daemon.running(ctx); failed == nil && !running {
			return fmt.Errorf("the daemon has ended:\n%s", daemon.trouble(ctx))
		}
		if now := time.Now(); now.Sub(began) > patience && now.Sub(last) > remark || said == "" && now.Sub(began) > patience {
			if word := lastLine(daemon.trouble(ctx)); word != said {
				r.is("waiting", "%s", cli.Text(word))
				said, last = word, now
			}
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("the mount does not work yet (%w); the daemon goes on trying, and says:\n%s", err,
				daemon.trouble(context.WithoutCancel(ctx)))
		}
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
