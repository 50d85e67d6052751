package doctor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/mountpoints"
	"lockfs/fusefs/mountpoint"
)

const defaultData = cli.DefaultData

// thisHost returns the real host. The command's flags select the cluster.
func thisHost(cmd *cobra.Command, data []string) *host {
	h := &host{
		root: "/", uid: os.Geteuid(), data: data, now: time.Now, openDevice: openDevice, lookPath: exec.LookPath, clock: readClock,
		mounts: mountpoint.All, mountState: mountpoint.State,
		configured: mountpoints.Configured, bare: mountpoint.Examine, daemons: sync.OnceValues(findDaemons), fileSystem: statfs,
		syncedWrites: syncedWrites, listen: tryListen, memory: readMemory, openFiles: readOpenFiles,
	}
	ask := cli.PassedOn(cmd, "data", "json")
	h.asked = len(ask) > 0
	h.cluster = once(func(ctx context.Context) (*clusterStatus, error) { return askStatus(ctx, ask) })
	h.filesRemoved = func(ctx context.Context) (map[string]int, error) { return askFilesRemoved(ctx, ask) }
	h.alarms = func(ctx context.Context) ([]alarm, error) { return askAlarms(ctx, ask) }
	found, _ := h.daemons()
	for _, d := range found {
		if len(data) == 0 && d.about != nil && d.about.Data != "" {
			h.data = append(h.data, d.about.Data)
		}
	}
	if len(h.data) == 0 && isDir(defaultData) && !h.onlyMounts() {
		h.data = []string{defaultData}
	}
	h.identities = []string{cli.DefaultIdentity()}
	for _, dir := range h.data {
		h.identities = append(h.identities, filepath.Join(dir, "identity"))
	}
	return h
}

// once asks on the first call only.
func once(ask func(context.Context) (*clusterStatus, error)) func(context.Context) (*clusterStatus, error) {
	var status *clusterStatus
	var err error
	asked := false
	return func(ctx context.Context) (*clusterStatus, error) {
		if !asked {
			status, err = ask(ctx)
			asked = true
		}
		return status, err
	}
}
