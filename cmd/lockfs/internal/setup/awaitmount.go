package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/health"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
)

// remark is the interval between messages of the daemon during the wait for the mount.
const remark = 5 * time.Second

// errUnmounted reports that a daemon that was kept has no mount any more.
var errUnmounted = errors.New("the daemon has no mount any more")

// awaitMount waits until a quorum of the servers executes calls on the mount. It returns errUnmounted only
// for a daemon that was kept.
func (h *host) awaitMount(ctx context.Context, r *report, daemon service, kept bool, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	began, said, last := time.Now(), "", time.Now()
	for {
		err := probe(ctx, h.mount, h.name)
		if err == nil {
			r.is("mount", "%s works", h.mount)
			return nil
		}
		switch running, failed := daemon.running(ctx); {
		case failed == nil && !running && kept, kept && h.lostMount(ctx):
			return errUnmounted
		case failed == nil && !running:
			return fmt.Errorf("the daemon has ended:\n%s", daemon.trouble(ctx))
		}
		if now := time.Now(); now.Sub(began) > patience && now.Sub(last) > remark || said == "" && now.Sub(began) > patience {
			if cause := h.whyNotYet(ctx, daemon); cause != said {
				r.is("waiting", "%s", cli.Text(cause))
				said, last = cause, now
			}
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("the mount does not work yet (%w): %s; the daemon keeps trying", err,
				h.whyNotYet(context.WithoutCancel(ctx), daemon))
		}
	}
}

// whyNotYet returns why a mount does not work: the health of the cluster, or the last line of the daemon's
// log if the daemon does not know it yet.
func (h *host) whyNotYet(ctx context.Context, daemon service) string {
	var healthy health.Health
	err := h.ask(ctx, func(ctx context.Context, asked *cluster.Admin) (err error) {
		healthy, _, err = asked.Health(ctx, false)
		return err
	})
	if err == nil && !healthy.Confirmed {
		return healthy.String()
	}
	return lastLine(daemon.trouble(ctx))
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// lostMount reports whether a server runs without its mount, for example after umount.
func (h *host) lostMount(ctx context.Context) (lost bool) {
	mounts, err := mountpoint.All()
	if h.role != identity.Server || err != nil || slices.Contains(mounts, h.mount) {
		return false
	}
	err = h.ask(ctx, func(ctx context.Context, asked *cluster.Admin) error {
		nodes, err := asked.Status(ctx, false)
		lost = slices.ContainsFunc(nodes, func(n cluster.NodeStatus) bool { return n.Name == h.name && n.Err == nil && n.Status.GetMount() == "" })
		return err
	})
	return lost && err == nil
}
