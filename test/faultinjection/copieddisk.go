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

// Ports of a copy, on a host whose mount has the usual HTTP port.
const (
	copyPort     = "7430"
	copyHTTPAddr = "127.0.0.1:7432"
)

// diskCopied copies the data directory of a follower and starts a second server with it on the host of a
// guest. The original runs or is frozen meanwhile. At the end the copy is killed. If it was not refused, the
// cluster may follow it. Then the original must not return, and the operator replaces or removes it.
func diskCopied(s *Site, g *target, strike Strike) func() {
	if g == s.servers[0] || len(s.guests) == 0 { // checks run on the host of the first server
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
	g.away = true // it must not start again in any case
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

// copyData copies the current disk of a server to a directory shared by all hosts.
func (g *target) copyData(t testing.TB) (dir string) {
	t.Helper()
	dir = g.node.Data + ".copy"
	g.host.MustRun(t, "sh", "-c", `rm -rf "$2" && cp -a "$1" "$2"`, "sh", g.disk.small, dir)
	return dir
}

// startCopy starts a server on a copy of another server's data, on a given host and its clock.
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

// clearAlarms clears the alarms raised by copies before the next part of the run.
func (s *Site) clearAlarms(t testing.TB) {
	t.Helper()
	var alarms []struct {
		Number uint64 `json:"number"`
		Kind   string `json:"kind"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.command(t, "alarm", "list", "--json")), &alarms))
	for _, a := range alarms {
		if a.Kind == "two_processes" { // an alarm gone with its server is no error
			_, _ = s.run(s.leading(), "alarm", "clear", fmt.Sprint(a.Number))()
		}
	}
}
