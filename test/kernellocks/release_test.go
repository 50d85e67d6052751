package kernellocks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// inPython makes one line of a program.
func inPython(program string) string { return fmt.Sprintf("exec(%q, globals())", program) }

// TestCloseThenLockElsewhere closes a locked file and then locks it on another host without waiting, by turns. On a local disk close(2)
// releases the lock before it returns.
func TestCloseThenLockElsewhere(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	shells := make([]*testcluster.Shell, len(c.Nodes))
	for i, n := range c.Nodes {
		shells[i] = testcluster.StartPython(t, n.Host, c.Mount)
		shells[i].Must("import fcntl, os, time; ex, nb = fcntl.LOCK_EX, fcntl.LOCK_NB")
	}
	for kind, lock := range map[string]string{
		"flock": "fcntl.flock(f, ex | nb)",
		"ofd":   "fcntl.fcntl(f, 37, __import__('struct').pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))",
	} {
		t.Run(kind, func(t *testing.T) {
			failed := 0
			for round := range 200 {
				// A write before it keeps the daemon of the holder busy, as a program does that records what it has done.
				errors := shells[round%3].Must(inPython("f = open('lock', 'a')\ntry: " + lock + "\nexcept OSError as e: print('refused', e)\nf.write('x'); f.flush(); f.close()"))
				if errors != "" {
					failed++
				}
			}
			require.Zero(t, failed, "of 200 rounds")
		})
	}

	t.Run("a child that closes its copy makes no request wait", func(t *testing.T) {
		shells[0].Must(inPython("f = open('lock', 'a'); fcntl.flock(f, ex)\nif os.fork() == 0: os.close(f.fileno()); os._exit(0)\nos.wait()"))
		took := shells[1].Must(inPython(`
f = open('lock', 'a'); all = []
for i in range(20):
    began = time.monotonic()
    try: fcntl.flock(f, ex | nb); print("locked")
    except BlockingIOError: all.append(time.monotonic() - began)
print(int(sum(all) * 1000))`))
		var milliseconds int
		_, err := fmt.Sscan(took, &milliseconds)
		require.NoError(t, err, took)
		t.Logf("20 refusals took %d ms", milliseconds)
		require.Less(t, milliseconds, 1000, "each request waits for 50 ms")
	})

	t.Run("a mount that does not answer", func(t *testing.T) {
		g := c.AddGuest(t, "m")
		g.Start(t)
		sh := testcluster.StartPython(t, g.Host, c.Mount)
		sh.Must("import fcntl; f = open('other', 'a'); fcntl.flock(f, fcntl.LOCK_EX)")
		g.Host.Cut()
		began := time.Now()
		shells[0].Must("f = open('other', 'a')")
		for range 5 {
			shells[0].Fails("fcntl.flock(f, ex | nb)", "Resource temporarily unavailable")
		}
		require.Less(t, time.Since(began), 3*time.Second)
		g.Host.Heal()
	})
}

// lastSteps returns how many commands a shell has traced, and the last of them.
func lastSteps(trace string) string {
	text, err := os.ReadFile(trace)
	steps := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Sprintf("%d steps (%v), the last:\n%s", len(steps), err, strings.Join(steps[max(0, len(steps)-12):], "\n"))
}

// TestRemovedLockFile has shells on three hosts lock a file that each removes, with the loop that the manual prints. A removal while a
// program on another host has the lock is reported.
func TestRemovedLockFile(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	alone := filepath.Join(c.Net.Dir(), "alone")
	const loop = `while :; do exec 9>>job.lock; flock 9; [ job.lock -ef /proc/self/fd/9 ] && break; done
		mkdir %[1]s || echo overlap; rmdir %[1]s; rm -f job.lock; exec 9>&-`
	inRounds := func(line string) (all string) {
		outputs := make(chan string)
		for _, n := range c.Nodes {
			go func() {
				trace := filepath.Join(c.Net.Dir(), n.Name+".trace")
				output, err := n.Host.Run("bash", "-c", fmt.Sprintf(
					"cd %s; exec 8>%s; BASH_XTRACEFD=8; set -x; for i in $(seq 20); do %s; done 2>&1", c.Mount, trace, fmt.Sprintf(line, alone),
				))
				if err != nil {
					err = fmt.Errorf("%w\n%s", err, lastSteps(trace))
				}
				outputs <- output + fmt.Sprint(err)
			}()
		}
		for range c.Nodes {
			all += <-outputs
		}
		return all
	}
	require.Equal(t, "<nil><nil><nil>", inRounds(loop))

	holder := testcluster.StartPython(t, c.Nodes[0].Host, c.Mount)
	holder.Must("import fcntl; f = open('kept', 'w'); fcntl.flock(f, fcntl.LOCK_EX)")
	c.Nodes[1].Host.MustRun(t, "rm", filepath.Join(c.Mount, "kept"))
	events, err := c.Nodes[2].Lockfs("events", "--json")
	require.NoError(t, err)
	require.Contains(t, events, "locked_file_removed")
	findings, _ := c.Nodes[2].Lockfs("doctor")
	require.Contains(t, findings, "kept was removed")
}
