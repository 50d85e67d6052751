package doctor

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cluster/health"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/mountpoints"
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
	alarms       func(context.Context) ([]alarm, error)
	filesRemoved func(context.Context) (map[string]int, error) // how often each file was in the last day while others used its lock
	asked        bool                                          // whom to ask was said
	mounts       func() ([]string, error)
	mountState   func(dir string) (dead bool, err error)
	configured   func() ([]mountpoints.Point, error)
	bare         func(dir string) (*mountpoint.Bare, error)
	daemons      func() ([]daemonSocket, error)
	fileSystem   func(path string) (unix.Statfs_t, error)
	syncedWrites func(dir string, count int) ([]time.Duration, error)
	listen       func(address string) error
	memory       func() uint64 // bytes; 0: it is not known
	openFiles    func() (soft, hard uint64, err error)
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

// clusterStatus is what is of use here of what `lockfs status --json` prints.
type clusterStatus struct {
	Health health.Health `json:"health"`
	Leader string        `json:"leader"`
	Time   time.Time     `json:"cluster_time"` // at some moment between the next two
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

// hasNoQuorum reports whether servers answer, but no quorum confirms a read. The check of the servers states that; checks of other things
// that need a quorum have nothing to add.
func (h *host) hasNoQuorum(ctx context.Context) bool {
	status, err := h.cluster(ctx)
	return err == nil && !status.Health.Confirmed
}

// daemonSocket is a socket of a daemon, and what came of connecting to it.
type daemonSocket struct {
	path  string
	about *cli.Daemon // nil: it does not say
	err   error
}
