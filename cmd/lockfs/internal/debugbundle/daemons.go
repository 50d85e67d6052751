package debugbundle

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"lockfs/cmd/lockfs/internal/cli"
)

// daemons adds the descriptions of the daemons on this host, as far as this user has access.
func (p *plan) daemons(ctx context.Context, c *collection) {
	sockets, err := cli.DebugSockets()
	if err != nil {
		c.lack("daemons", err)
	}
	var asking sync.WaitGroup
	for _, socket := range sockets {
		folder := "daemons/" + strings.TrimSuffix(strings.TrimPrefix(filepath.Base(socket), "debug-"), ".sock") + "/"
		asking.Go(func() { p.daemon(ctx, c, folder, socket) })
	}
	asking.Wait()
}

func (p *plan) daemon(ctx context.Context, c *collection, folder, socket string) {
	about, err := cli.AskDaemon(socket)
	if err != nil {
		c.lack(folder, err)
		return
	}
	if text, err := json.MarshalIndent(about, "", "  "); err == nil {
		c.text(folder+"about.json", text)
	}
	client := cli.SocketClient(socket)
	var asking sync.WaitGroup
	get := func(name, path string, add func(string, []byte)) {
		asking.Go(func() {
			content, err := fetch(ctx, client, path)
			if err != nil {
				c.lack(folder+name, err)
				return
			}
			add(folder+name, content)
		})
	}
	get("build.txt", "/build", c.text)
	get("metrics.txt", "/metrics", c.text)
	get("goroutines.txt", "/debug/pprof/goroutine?debug=2", c.text)
	get("heap.pb.gz", "/debug/pprof/heap", c.binary)
	if seconds := int(p.cpu.Seconds()); seconds > 0 {
		get("cpu.pb.gz", fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), c.binary)
	}
	if about.Data != "" {
		asking.Go(func() { c.sizes(folder+"data.txt", about.Data) })
	}
	asking.Wait()
}

func fetch(ctx context.Context, client *http.Client, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*commandTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://lockfs"+path, nil)
	if err != nil {
		return nil, err
	}
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(reply.Body, mostBytes))
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, reply.Status)
	}
	return content, err
}
