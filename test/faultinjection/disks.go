package faultinjection

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/baddisk"
	"lockfs/test/hosts"
)

// A dataDisk is the disk of a server: small, separate, and shown by a process that can be slow, fail and
// hang.
type dataDisk struct {
	host  *hosts.Host
	small string // where the disk is
	obeys string // the control file
	shown *hosts.Process
}

const diskSize = "64m"

// startDisk mounts a disk at data.
func startDisk(t testing.TB, h *hosts.Host, data string) *dataDisk {
	t.Helper()
	d := &dataDisk{host: h, small: data + ".small", obeys: data + ".obeys"}
	for _, dir := range []string{d.small, data} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	h.MustRun(t, "mount", "-t", "tmpfs", "-o", "mode=700,size="+diskSize, "data", d.small)
	self, err := os.Executable()
	require.NoError(t, err)
	d.shown = h.Start(self, baddisk.Args(d.small, data, d.obeys)...)
	require.NoError(t, d.shown.WaitOutput(baddisk.Ready))
	return d
}

// tell changes the control file.
func (d *dataDisk) tell(t testing.TB, what string) {
	t.Helper()
	fresh := d.obeys + ".new"
	require.NoError(t, os.WriteFile(fresh, []byte(what), 0o644))
	require.NoError(t, os.Rename(fresh, d.obeys))
}

func slowDisk(s *Site, g *target, strike Strike) func() {
	g.disk.tell(s.t, (5*time.Millisecond + time.Duration(strike.Amount*float64(200*time.Millisecond))).String())
	return func() { g.disk.tell(s.t, baddisk.Good) }
}

// failingDisk ends a server.
func failingDisk(s *Site, g *target, _ Strike) func() {
	g.excuse()
	g.disk.tell(s.t, baddisk.Bad)
	return func() {
		g.excuse()
		g.disk.tell(s.t, baddisk.Good)
	}
}

func hangingDisk(_ *Site, g *target, _ Strike) func() {
	g.excuse()
	g.disk.shown.Freeze()
	return func() {
		g.excuse()
		g.disk.shown.Thaw()
	}
}

// fullDisk lets another program take all space, also freed space.
func fullDisk(s *Site, g *target, _ Strike) func() {
	g.excuse()
	filler := filepath.Join(g.disk.small, "filler")
	filling := g.host.Start("sh", "-c", fmt.Sprintf("while :; do cat /dev/zero >> %s; sleep 0.05; done 2> /dev/null", filler))
	return func() {
		g.excuse()
		filling.Kill()
		g.host.MustRun(s.t, "rm", "-f", filler)
	}
}

// excuse permits a server to end by itself because of a bad disk.
func (g *target) excuse() { g.excused = time.Now() }

const excuseLasts = 30 * time.Second
