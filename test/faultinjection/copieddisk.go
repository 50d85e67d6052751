package faultinjection

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// Ports of a copy, on a host where a mount has the usual one of HTTP.
const (
	copyPort     = "7430"
	copyHTTPAddr = "127.0.0.1:7432"
)

// diskCopied copies the data directory of a follower and starts a second server with it on the host of a guest. The original goes on meanwhile, or
// is frozen. At the end the copy is killed. Unless it was refused, the cluster may follow it; the original must not come back then,
// and the operator replaces or removes it.
func diskCopied(s *Site, g *target, strike Strike) func() {
	if g == s.servers[0] || len(s.guests) == 0 { // the judges look from the host of the first server
		return nil
	}
	at := s.guests[strike.Pick%uint64(len(s.guests))]
	if at.held&process != 0 { // its host may be frozen
		return nil
	}
	daemon := g.daemon()
	freezes := strike.Amount < 0.5
	data := g.copyData(s.t)
	if freezes {
		daemon.Freeze()
	}
	g.away = true // it is not to be started again, whether it ends or not
	second := s.startCopy(g, at, data)
	return func() {
		refused := hasEnded(second)
		follows := strings.Contains(second.Log(), g.readyLine())
		second.Kill()
		if freezes {
			daemon.Thaw()
		}
		require.NoError(s.t, os.RemoveAll(data))
		if follows && refused && !strings.Contains(second.Log(), "the cluster follows another process as this server") {
			s.t.Errorf("the copy of %s was ready, and ended by itself:\n%s", g.name, tailOf(second))
		}
		s.Tell(fmt.Sprintf("%s ended: original frozen: %t, copy was ready: %t, copy ended by itself: %t, original ended: %t",
			strike, freezes, follows, refused, hasEnded(daemon)))
		if refused && !follows && !hasEnded(daemon) {
			g.away = false
			return
		}
		s.replaceOrRemove(g, strike)
	}
}

// copyData copies what is on the disk of a server, as it is at this moment, to a directory that all hosts see.
func (g *target) copyData(t testing.TB) (dir string) {
	t.Helper()
	dir = g.node.Data + ".copy"
	g.host.MustRun(t, "sh", "-c", `rm -rf "$2" && cp -a "$1" "$2"`, "sh", g.disk.small, dir)
	return dir
}

// startCopy starts a server on a copy of the data of another one, on some host, by the clock of that host.
func (s *Site) startCopy(of, at *target, data string) *hosts.Process {
	args := []string{"server", "--name", of.name, "--data", data, "--addr", at.host.Addr() + ":" + copyPort, "--http-addr", copyHTTPAddr}
	if !s.Cluster.Secure {
		args = append(args, "--insecure")
	}
	environment := slices.Concat(of.node.Environment, []string{"LOCKFS_TEST_CLOCK_FILE=" + at.clock})
	server := at.host.Start("env", slices.Concat(environment, []string{of.node.Other}, args, s.Cluster.Flags)...)
	s.Cluster.Started = append(s.Cluster.Started, server)
	return server
}

// clearAlarms clears the alarms that copies have raised, so that the next piece begins without.
func (s *Site) clearAlarms(t testing.TB) {
	t.Helper()
	var alarms []struct {
		Number uint64 `json:"number"`
		Kind   string `json:"kind"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.command(t, "alarm", "list", "--json")), &alarms))
	for _, a := range alarms {
		if a.Kind == "two_processes" { // one that went with its server meanwhile is no error
			_, _ = s.run(s.leading(), "alarm", "clear", fmt.Sprint(a.Number))()
		}
	}
}
