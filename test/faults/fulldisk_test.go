package faults

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// contender takes a lock on its host again and again until a file is there, and makes a file while it has it. What it was told is on
// the disk that all hosts share: whom it met in there, and which files it made.
const contender = `
import os, sys, time
mount, outside, me = sys.argv[1:]
lock, inside = mount + "/lock", outside + "/inside"
told = open(outside + "/made." + me, "w", buffering=1)
n = 0
while not os.path.exists(outside + "/stop"):
    try:
        fd = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except OSError:
        time.sleep(0.02)
        continue
    os.close(fd)
    try:
        os.mkdir(inside)
        os.rmdir(inside)
    except OSError as error:
        open(outside + "/violated", "a").write(me + ": " + str(error) + "\n")
    n += 1
    try:
        os.mkdir(mount + "/made." + me + "." + str(n))
        print("made.%s.%d" % (me, n), file=told)
    except OSError:
        pass
    while True:
        try:
            os.unlink(lock)
            break
        except FileNotFoundError:
            break
        except OSError:
            time.sleep(0.02)
`

// heartbeat renews a large file in its size for as long as there is no stop, and tells how often it was done.
const heartbeat = `
import os, sys, time
mount, outside = sys.argv[1:]
n = 0
while not os.path.exists(outside + "/stop"):
    try:
        with open(mount + "/heart", "r+") as file:
            file.write(("%010d" % (n + 1)) * 20000)
        n += 1
        open(outside + "/beats.new", "w").write(str(n))
        os.rename(outside + "/beats.new", outside + "/beats")
    except OSError:
        time.sleep(0.05)
`

// TestFullDisks has the disks of one server, and then of all, be filled by another program and freed again, under contenders:
// nothing that was acknowledged is lost, nobody meets another one, and the service is back by itself.
func TestFullDisks(t *testing.T) {
	c := suite.NewCluster(t, "--min-free", "16M")
	for range 3 {
		n := c.Add(t)
		n.Host.MustRun(t, "mkdir", n.Data)
		n.Host.MustRun(t, "mount", "-t", "tmpfs", "-o", "size=64m", "data", n.Data)
		n.Start(t)
	}
	outside := t.TempDir()
	first := c.Nodes[0]
	first.Host.MustRun(t, "python3", "-c", "import sys; open(sys.argv[1], 'w').write('0' * 200000)", c.Path("heart"))
	var running []*hosts.Process
	for _, n := range c.Nodes {
		running = append(running, n.Host.Start("python3", "-c", contender, c.Mount, outside, n.Name))
	}
	running = append(running, c.Nodes[1].Host.Start("python3", "-c", heartbeat, c.Mount, outside))
	made := func() (names []string) {
		for _, n := range c.Nodes {
			told, err := os.ReadFile(filepath.Join(outside, "made."+n.Name))
			if !errors.Is(err, fs.ErrNotExist) { // it has not begun
				require.NoError(t, err)
			}
			names = append(names, strings.Fields(string(told))...)
		}
		return names
	}
	goesOn := func() {
		t.Helper()
		before := len(made())
		hosts.Eventually(t, "locks are taken again", func() (string, bool) {
			now := len(made())
			return strconv.Itoa(now), now > before+20
		})
	}
	stops := func(n *suite.Node) int { return strings.Count(n.Server.Log(), "the disk is full: this node takes no part") }
	goesOn()
	leader := c.Leader()
	for _, full := range [][]*suite.Node{{leader}, c.Others(leader)[:1], c.Nodes} {
		stopped := make(map[*suite.Node]int)
		for _, n := range full {
			stopped[n] = stops(n)
		}
		var fillers []*hosts.Process
		for _, n := range full {
			fillers = append(fillers, n.Host.Start("sh", "-c", "while :; do cat /dev/zero >> "+n.Data+"/filler; sleep 0.05; done 2> /dev/null"))
		}
		if len(full) == 1 { // else there may be no majority before there is an alarm
			attempt := 0
			hosts.Eventually(t, "nothing may grow", func() (string, bool) {
				attempt++
				said, err := first.Host.Run("touch", c.Path("grows."+full[0].Name+"."+strconv.Itoa(attempt)))
				return said, err != nil && strings.Contains(said+err.Error(), "No space left")
			})
		}
		hosts.Eventually(t, "logs need space, and have none", func() (string, bool) {
			waiting := 0
			for _, n := range full {
				if stops(n) > stopped[n] {
					waiting++
				}
			}
			return strconv.Itoa(waiting), waiting > len(full)/2 // then there is nothing to write for the others
		})
		if len(full) == 1 {
			alarms, err := c.Others(full[0])[0].Lockfs("alarm", "list")
			require.NoError(t, err)
			require.Contains(t, alarms, "no_space")
			c.Others(full[0])[0].Host.MustRun(t, "chmod", "640", c.Path("heart"))
		}
		for i, n := range full {
			fillers[i].Kill()
			n.Host.MustRun(t, "rm", filepath.Join(n.Data, "filler"))
		}
		goesOn()
	}
	first.Host.MustRun(t, "touch", filepath.Join(outside, "stop"))
	for _, p := range running {
		require.NoError(t, p.Wait(), p.Log())
	}
	_, err := first.Host.Run("test", "!", "-e", filepath.Join(outside, "violated"))
	require.NoError(t, err, "two were in there at once")
	there := first.Host.MustRun(t, "ls", c.Mount)
	listed := make(map[string]bool)
	for _, name := range strings.Fields(there) {
		listed[name] = true
	}
	for _, name := range made() {
		require.True(t, listed[name], name)
	}
	beats, err := strconv.Atoi(strings.TrimSpace(first.Host.MustRun(t, "cat", filepath.Join(outside, "beats"))))
	require.NoError(t, err)
	last, err := strconv.Atoi(first.Host.MustRun(t, "head", "-c", "10", c.Path("heart")))
	require.NoError(t, err)
	require.GreaterOrEqual(t, last, beats, "a renewal that was acknowledged")
	c.RequireSameState(t)
	for _, n := range c.Nodes {
		n.Stop(t)
	}
}
