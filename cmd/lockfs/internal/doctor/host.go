package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cluster/health"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/mountpoints"
	"lockfs/fusefs/mountpoint"
)

// host is the access of the checks to the machine. Tests replace it.
type host struct {
	root       string   // root of /proc, /dev and /etc: "/"
	uid        int      // of this process
	data       []string // data directories, if known
	identities []string // directories

	now          func() time.Time
	openDevice   func(path string) error
	lookPath     func(program string) (path string, err error)
	clock        func() (synchronised bool, err error)
	cluster      func(context.Context) (*clusterStatus, error) // asks the cluster
	alarms       func(context.Context) ([]alarm, error)
	filesRemoved func(context.Context) (map[string]int, error) // per file: removals in the last day while other programs used its lock
	asked        bool                                          // the target is on the command line
	mounts       func() ([]string, error)
	mountState   func(dir string) (dead bool, err error)
	configured   func() ([]mountpoints.Point, error)
	bare         func(dir string) (*mountpoint.Bare, error)
	daemons      func() ([]daemonSocket, error)
	fileSystem   func(path string) (unix.Statfs_t, error)
	syncedWrites func(dir string, count int) ([]time.Duration, error)
	listen       func(address string) error
	memory       func() uint64 // bytes; 0: unknown
	openFiles    func() (soft, hard uint64, err error)
}

// path returns the path of a file of the machine.
func (h *host) path(name string) string { return filepath.Join(h.root, name) }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// eachData runs a check for each data directory. A host with only mounts has none.
func (h *host) eachData(look func(dir string) Finding) []Finding {
	switch {
	case len(h.data) == 0 && h.onlyMounts():
		return nil
	case len(h.data) == 0:
		return one(unknown("on a server, give its data directory with --data", "no data directory is known"))
	}
	var found []Finding
	for _, dir := range h.data {
		found = append(found, look(dir))
	}
	return found
}

// clusterStatus has the fields used here of `lockfs status --json`.
type clusterStatus struct {
	Health health.Health `json:"health"`
	Leader string        `json:"leader"`
	Time   time.Time     `json:"cluster_time"` // between the next two
	asked  time.Time
	came   time.Time
	Usage  *struct {
		Bytes    uint64 `json:"bytes"`
		MaxBytes uint64 `json:"max_bytes"`
	} `json:"usage"`
	SeveralClusters string `json:"several_clusters"`
	Nodes           []struct {
		Name    string `json:"name"`
		Address string `json:"address"`
		Version string `json:"version"`
		State   string `json:"state"`
		Voter   bool   `json:"voter"`
		Error   string `json:"error"`
	} `json:"nodes"`
}

// hasNoQuorum reports whether servers answer, but no quorum confirms a read. The check of the servers reports
// this; other checks skip.
func (h *host) hasNoQuorum(ctx context.Context) bool {
	status, err := h.cluster(ctx)
	return err == nil && !status.Health.Confirmed
}

// onlyMounts reports whether daemons of mounts run here, and no server.
func (h *host) onlyMounts() bool {
	found, err := h.daemons()
	return err == nil && len(found) > 0 && !slices.ContainsFunc(found, func(d daemonSocket) bool { return d.kind() != "mount" })
}

// hasDaemon reports whether a daemon runs here.
func (h *host) hasDaemon() bool {
	found, err := h.daemons()
	return err == nil && slices.ContainsFunc(found, func(d daemonSocket) bool { return d.err == nil })
}

// daemonSocket is a socket of a daemon, and the result of connecting to it.
type daemonSocket struct {
	path  string
	about *cli.Daemon // nil: no reply
	err   error
}

// kind returns the kind of the daemon: server, mount or dev.
func (d daemonSocket) kind() string {
	if d.about != nil {
		return d.about.Kind
	}
	return cli.KindOfSocket(d.path)
}
