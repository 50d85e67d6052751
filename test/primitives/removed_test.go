package primitives

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// inRounds runs a line of shell on each host at once, in the directory of the mount, so often with a pause of so many milliseconds,
// and returns what they wrote to standard error.
func inRounds(t *testing.T, on []*hosts.Host, dir string, count, pause int, line string) (errors string) {
	t.Helper()
	all := make(chan string)
	for _, h := range on {
		script := fmt.Sprintf("cd %s; H=%s; for i in $(seq %d); do %s; sleep 0.%03d; done", dir, h.Name(), count, line, pause)
		go func() {
			output, err := h.Run("sh", "-c", "("+script+") 2>&1")
			if err != nil {
				output += err.Error()
			}
			all <- output
		}()
	}
	for range on {
		errors += <-all
	}
	return errors
}

func hostsOf(c *testcluster.Cluster) (all []*hosts.Host) {
	for _, n := range c.Nodes {
		all = append(all, n.Host)
	}
	return all
}

// TestDataRemovedElsewhereIsNeverStale: programs on three hosts write to a file and remove it. On a local disk none of them fails.
func TestDataRemovedElsewhereIsNeverStale(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	all := hostsOf(c)
	c.Nodes[0].Host.MustRun(t, "sh", "-c", "mkdir -m 777 "+c.Mount+"/d")
	dir := c.Mount + "/d"
	for _, program := range []struct{ name, line string }{
		{"write and remove", "echo $H >t; rm -f t"},
		{"replace", "echo $H >n.$$; mv -f n.$$ t; echo more >>t; cat t >/dev/null || [ ! -e t ]"},
		{"truncate, change and remove", "echo $H >t; truncate -s 1 t; rm -f t"},
		{"directory", "mkdir -p x; rmdir x 2>/dev/null || :"},
	} {
		for _, pause := range []int{50, 10} {
			errors := inRounds(t, all, dir, 40, pause, program.line)
			for _, line := range strings.Split(errors, "\n") {
				require.NotContains(t, line, "Stale file handle", "%s, every %d ms", program.name, pause)
			}
			if program.name == "write and remove" {
				require.Empty(t, errors, "every %d ms", pause)
			}
		}
	}
}

// TestDataRemovedElsewhereStaysOpen: descriptors keep working on all hosts, and share what is in the file.
func TestDataRemovedElsewhereStaysOpen(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	path := c.Mount + "/log"
	here, there := testcluster.StartPython(t, c.Nodes[0].Host, c.Mount), testcluster.StartPython(t, c.Nodes[1].Host, c.Mount)
	for _, remove := range []string{"os.remove('log')", "open('new', 'w').close(); os.rename('new', 'log')"} {
		here.Must("import os; f = open('log', 'w+b', buffering=0); _ = f.write(b'one')")
		there.Must("import os; g = open('log', 'r+b', buffering=0)")
		there.Must(remove)
		here.Must("_ = f.write(b' two'); os.ftruncate(f.fileno(), 6); os.fchmod(f.fileno(), 0o600)")
		// More files are removed than the cluster keeps for a while, and other hosts have to hear of this one first.
		there.Must("for i in range(1100): open('x%d' % (i % 3), 'w').close(); os.remove('x%d' % (i % 3))")
		require.Equal(t, "b'one tw'", strings.TrimSpace(there.Must("g.seek(0); print(g.read())")))
		there.Must("_ = g.write(b'o')")
		require.Equal(t, "b'one two' 0", strings.TrimSpace(here.Must("f.seek(0); print(f.read(), os.fstat(f.fileno()).st_nlink)")))
		here.Must("f.close()")
		there.Must("g.close()")
	}
	c.Nodes[0].Host.MustRun(t, "rm", "-f", path)
}

// TestLockRemovedElsewhereIsStale: the holder of a lock learns from its next write that another host has removed it.
func TestLockRemovedElsewhereIsStale(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	here, there := testcluster.StartPython(t, c.Nodes[0].Host, c.Mount), testcluster.StartPython(t, c.Nodes[1].Host, c.Mount)
	here.Must("import os; f = os.open('a.lock', os.O_CREAT | os.O_EXCL | os.O_WRONLY)")
	there.Must("import os; os.remove('a.lock')")
	here.Fails("os.write(f, b'heartbeat')", "Stale file handle")
}

// TestLogrotateOnThreeHosts rotates one log from three hosts, while programs there append to it.
func TestLogrotateOnThreeHosts(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	dir := c.Mount + "/logs"
	c.Nodes[0].Host.MustRun(t, "sh", "-c", "mkdir -m 755 "+dir+"; printf '"+dir+"/log {\n rotate 2\n size 1\n create\n missingok\n}\n' >"+dir+"/conf; chmod 644 "+dir+"/conf")
	errors := inRounds(t, hostsOf(c), dir, 15, 10, "echo line >>log; logrotate -f -s "+c.Net.Dir()+"/state.$$ conf; exec 7>>log; echo more >&7; exec 7>&-")
	require.NotContains(t, errors, "Stale file handle")
}
