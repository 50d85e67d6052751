package doctor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
)

// host is all that the checks know of the machine. Tests have others.
type host struct {
	root       string   // where /proc, /dev and /etc are found: "/"
	uid        int      // of this process
	data       []string // data directories; none is known if it is empty
	identities []string // directories

	now          func() time.Time
	openDevice   func(path string) error
	lookPath     func(program string) (path string, err error)
	clock        func() (synchronised bool, err error)
	cluster      func(context.Context) (*clusterStatus, error) // asks it
	asked        bool                                          // whom to ask was said
	mounts       func() ([]string, error)
	mountState   func(dir string) (dead bool, err error)
	daemons      func() ([]daemonSocket, error)
	fileSystem   func(path string) (unix.Statfs_t, error)
	syncedWrites func(dir string, count int) ([]time.Duration, error)
	listen       func(address string) error
	memory       func() uint64 // bytes; 0: it is not known
	openFiles    func() (soft, hard uint64, err error)
}

const defaultData = "/var/lib/lockfs"

// thisHost looks at the real one. The command's flags say how to ask the cluster.
func thisHost(cmd *cobra.Command, data []string) *host {
	h := &host{
		root: "/", uid: os.Geteuid(), data: data, now: time.Now, openDevice: openDevice, lookPath: exec.LookPath, clock: readClock,
		mounts: mountpoint.All, mountState: mountpoint.State, daemons: findDaemons, fileSystem: statfs,
		syncedWrites: syncedWrites, listen: tryListen, memory: readMemory, openFiles: readOpenFiles,
	}
	ask := cli.PassedOn(cmd, "data", "json")
	h.asked = len(ask) > 0
	h.cluster = once(func(ctx context.Context) (*clusterStatus, error) { return askStatus(ctx, ask) })
	found, _ := h.daemons()
	for _, d := range found {
		if len(data) == 0 && d.about != nil && d.about.Data != "" {
			h.data = append(h.data, d.about.Data)
		}
	}
	if len(h.data) == 0 && isDir(defaultData) {
		h.data = []string{defaultData}
	}
	h.identities = []string{cli.DefaultIdentity()}
	for _, dir := range h.data {
		h.identities = append(h.identities, filepath.Join(dir, "identity"))
	}
	return h
}

// once asks only the first time.
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

// path is where a file of the machine is.
func (h *host) path(name string) string { return filepath.Join(h.root, name) }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// eachData does a check for every data directory.
func (h *host) eachData(look func(dir string) Finding) []Finding {
	if len(h.data) == 0 {
		return one(unknown("on a server, give its data directory with --data", "no data directory is known"))
	}
	var found []Finding
	for _, dir := range h.data {
		found = append(found, look(dir))
	}
	return found
}
