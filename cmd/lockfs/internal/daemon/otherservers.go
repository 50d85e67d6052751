package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/durable"
)

// otherServers keeps what a mount hears of the servers of its cluster in a file, an address in each line, without its own.
type otherServers struct {
	path   string
	own    string
	logger *slog.Logger

	mu      sync.Mutex
	others  []string
	writing bool // somebody writes, and looks again afterwards
}

// heard is session.Config.Heard. It does not wait for the disk: the session lasts through others when that hangs.
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

// write writes until what is there is what was heard last.
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
		if err := durable.Replace(o.path, []byte(strings.Join(append(slices.Clone(others), ""), "\n"))); err != nil {
			o.logger.Warn("the other servers are not written down: the next process may have its mount wait for this server", "error", err)
		}
		written = others
	}
}

// readServers answers none if nobody has written any.
func readServers(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return strings.Fields(string(content)), nil
}
