package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"lockfs/cluster/atomicfile"
	"lockfs/cluster/clusterpb"
)

// otherServers keeps a file with the addresses of the cluster's other servers, one a line.
type otherServers struct {
	path   string
	own    string
	logger *slog.Logger

	mu      sync.Mutex
	others  []string
	writing bool // a writer runs, and checks again afterwards
}

// heard implements session.Config.Heard. It does not wait for the disk, because the session must survive a
// hanging one.
func (o *otherServers) heard(reply *clusterpb.KeepAliveReply) {
	others := slices.DeleteFunc(slices.Clone(reply.GetServers()), func(address string) bool { return address == o.own })
	slices.Sort(others)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(reply.GetServers()) == 0 || o.others != nil && slices.Equal(others, o.others) {
		return
	}
	o.others = append([]string{}, others...)
	if !o.writing {
		o.writing = true
		go o.write()
	}
}

// write writes until the file is up to date.
func (o *otherServers) write() {
	var written []string
	for {
		o.mu.Lock()
		others := o.others
		if written != nil && slices.Equal(written, others) {
			o.writing = false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		if err := atomicfile.Replace(o.path, []byte(strings.Join(append(slices.Clone(others), ""), "\n"))); err != nil {
			o.logger.Warn("the addresses of other servers are not stored: after a restart the mount waits for this server", "error", err)
		}
		written = others
	}
}

// readServers returns no addresses without a file.
func readServers(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return strings.Fields(string(content)), nil
}
