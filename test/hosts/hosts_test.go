package hosts_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

func TestMain(m *testing.M) {
	hosts.Main()
	os.Exit(m.Run())
}

// server answers each connection with its host's name, and says so when it can.
const server = `
import socket
listener = socket.create_server(("", 7000))
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    connection.sendall(socket.gethostname().encode())
    connection.close()
`

// client connects to its argument and prints the answer.
const client = `
import socket, sys
connection = socket.create_connection((sys.argv[1], 7000), timeout=float(sys.argv[2]))
print(connection.recv(100).decode(), end="")
`

// ask waits for so many seconds at most.
func ask(from, to *hosts.Host, patience string) (string, error) {
	return from.Run("python3", "-c", client, to.Addr(), patience)
}

func serve(t *testing.T, h *hosts.Host) *hosts.Process {
	t.Helper()
	p := h.Start("python3", "-c", server)
	require.NoError(t, p.WaitOutput("listening"))
	return p
}

func TestHostsAreHosts(t *testing.T) {
	net := hosts.New(t)
	a, b := net.Host("a"), net.Host("b")
	assert.Same(t, a, net.Host("a"), "a host is made once")
	assert.NotEqual(t, a.Addr(), b.Addr())

	assert.Equal(t, "a\n", a.MustRun(t, "hostname"))
	assert.Equal(t, "b\n", b.MustRun(t, "hostname"))
	assert.NotEqual(t, "a", must(os.Hostname()))

	// Its /proc shows its own processes: init, and the one that looks.
	processes := a.MustRun(t, "sh", "-c", "cd /proc; echo [0-9]*")
	assert.Len(t, strings.Fields(processes), 2, processes)

	// A mount on one host is seen on that host, by programs started later too.
	dir := t.TempDir()
	a.MustRun(t, "mount", "-t", "tmpfs", "only-on-a", dir)
	assert.Contains(t, a.MustRun(t, "cat", "/proc/mounts"), dir)
	assert.NotContains(t, b.MustRun(t, "cat", "/proc/mounts"), dir)
	assert.NotContains(t, string(must(os.ReadFile("/proc/mounts"))), dir)

	// A file on the local disk is seen on all.
	shared := filepath.Join(net.Dir(), "shared")
	a.MustRun(t, "sh", "-c", "echo hello > "+shared)
	assert.Equal(t, "hello\n", b.MustRun(t, "cat", shared))
}

func TestRunTellsHowItWent(t *testing.T) {
	a := hosts.New(t).Host("a")
	stdout, err := a.Run("sh", "-c", "echo out; echo err >&2; exit 3")
	assert.Equal(t, "out\n", stdout)
	assert.ErrorContains(t, err, "exit status 3")
	assert.ErrorContains(t, err, "err\n")
	_, err = a.Run("there-is-no-such-program")
	assert.ErrorIs(t, err, exec.ErrNotFound)
}

func TestCutAndHeal(t *testing.T) {
	net := hosts.New(t)
	a, b, c := net.Host("a"), net.Host("b"), net.Host("c")
	for _, h := range []*hosts.Host{a, b, c} {
		serve(t, h)
	}
	const forNothing, forAnswer = "0.5", "20"
	reaches := func(from, to *hosts.Host, patience string) bool {
		answer, err := ask(from, to, patience)
		if err != nil {
			return false
		}
		assert.Equal(t, to.Name(), answer)
		return true
	}
	require.True(t, reaches(a, b, forAnswer))
	require.True(t, reaches(b, a, forAnswer))

	a.Cut()
	assert.False(t, reaches(a, b, forNothing), "from the host that is cut off")
	assert.False(t, reaches(b, a, forNothing), "to the host that is cut off")
	assert.True(t, reaches(b, c, forAnswer), "among the others")
	assert.Equal(t, "a", a.MustRun(t, "python3", "-c", client, "127.0.0.1", forAnswer), "loopback")
	a.Heal()
	a.Heal() // a second time does nothing
	assert.True(t, reaches(a, b, forAnswer))
	assert.True(t, reaches(b, a, forAnswer))

	a.CutLink(b)
	assert.False(t, reaches(a, b, forNothing), "the pair, in one direction")
	assert.False(t, reaches(b, a, forNothing), "and in the other")
	assert.True(t, reaches(a, c, forAnswer), "all other pairs")
	assert.True(t, reaches(c, b, forAnswer), "all other pairs")
	a.CutLink(c)
	b.HealLink(a) // either end heals it
	b.HealLink(a) // a second time does nothing
	assert.True(t, reaches(a, b, forAnswer))
	assert.False(t, reaches(a, c, forNothing), "another pair stays as it is")
	a.Heal()
	assert.True(t, reaches(a, c, forAnswer))

	a.LinkDown()
	assert.False(t, reaches(a, b, forNothing))
	assert.False(t, reaches(b, a, forNothing))
	a.LinkUp()
	hosts.Eventually(t, "b reaches a after its link is up", func() (string, bool) {
		answer, err := ask(b, a, forAnswer)
		return fmt.Sprint(answer, err), err == nil
	})
}

func TestCutFromDropsOneWay(t *testing.T) {
	net := hosts.New(t)
	a, b, c := net.Host("a"), net.Host("b"), net.Host("c")
	// What arrives is seen by a receiver that answers nothing.
	const receiver = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7000))
print("listening", flush=True)
while True:
    print(s.recv(100).decode(), flush=True)
`
	const sender = `
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(sys.argv[2].encode(), (sys.argv[1], 7000))
`
	received := make(map[*hosts.Host]*hosts.Process)
	for _, h := range []*hosts.Host{a, b, c} {
		received[h] = h.Start("python3", "-c", receiver)
		require.NoError(t, received[h].WaitOutput("listening"))
	}
	send := func(from, to *hosts.Host, text string) {
		from.MustRun(t, "python3", "-c", sender, to.Addr(), text)
	}
	// Each knows the others' hardware addresses, which it could not ask for later.
	for _, from := range []*hosts.Host{a, b, c} {
		for _, to := range []*hosts.Host{a, b, c} {
			send(from, to, "hello from "+from.Name())
			require.NoError(t, received[to].WaitOutput("hello from "+from.Name()))
		}
	}

	a.CutFrom(b)
	send(b, a, "dropped")
	send(a, b, "passes from a to b")
	require.NoError(t, received[b].WaitOutput("passes from a to b"))
	send(c, a, "passes from c to a")
	require.NoError(t, received[a].WaitOutput("passes from c to a"))
	b.Heal() // either end heals it
	send(b, a, "passes again")
	require.NoError(t, received[a].WaitOutput("passes again"))
	assert.NotContains(t, received[a].Log(), "dropped")
}

func TestSignalsReachTheProgram(t *testing.T) {
	a := hosts.New(t).Host("a")
	const program = `trap 'echo terminated; exit 5' TERM; echo ready; while :; do read line < %s; done`
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	start := func() *hosts.Process {
		p := a.Start("bash", "-c", fmt.Sprintf(program, pipe))
		require.NoError(t, p.WaitOutput("ready"))
		return p
	}

	p := start()
	assert.ErrorContains(t, p.Stop(), "exit status 5")
	assert.Equal(t, "ready\nterminated\n", p.Stdout())
	assert.ErrorContains(t, p.WaitOutput("never"), "terminated", "the error has the log")
	p.Signal(syscall.SIGTERM) // to one that has ended: nothing
	p.Kill()

	p = start()
	p.Kill()
	assert.ErrorContains(t, p.Wait(), "killed")

	p = start()
	p.Freeze()
	assert.Equal(t, "T", state(t, p))
	p.Thaw()
	assert.Error(t, p.Stop())
}

func TestFreezeStopsWholeHosts(t *testing.T) {
	net := hosts.New(t)
	a, b := net.Host("a"), net.Host("b")
	var frozen []*hosts.Process
	for range 3 {
		frozen = append(frozen, a.Start("sleep", "1000"))
	}
	other := b.Start("sleep", "1000")
	for _, p := range append(frozen, other) {
		hosts.Eventually(t, p.String()+" sleeps", func() (string, bool) { return state(t, p), state(t, p) == "S" })
	}
	a.Freeze()
	for _, p := range frozen {
		assert.Equal(t, "T", state(t, p))
	}
	assert.Equal(t, "S", state(t, other))
	a.Thaw()
	for _, p := range frozen {
		hosts.Eventually(t, p.String()+" sleeps", func() (string, bool) { return state(t, p), state(t, p) == "S" })
	}
	a.Freeze() // the test ends with a frozen host
}

func TestOrphansAreReaped(t *testing.T) {
	a := hosts.New(t).Host("a")
	a.MustRun(t, "sh", "-c", "sleep 0.01 & exit 0")
	hosts.Eventually(t, "only init is left", func() (string, bool) {
		seen := a.MustRun(t, "sh", "-c", "cd /proc; echo [0-9]*")
		return seen, len(strings.Fields(seen)) == 2
	})
}

// TestNothingIsLeftBehind ends a test process in several ways while its hosts are
// at work, one of them frozen and with a mount, and looks for what remains.
func TestNothingIsLeftBehind(t *testing.T) {
	for _, how := range []string{"passes", "fails", "killed"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(must(os.Executable()), "-test.run=^TestHelperBusyHosts$", "-test.v")
			cmd.Env = append(os.Environ(), helperVariable+"="+how, "TMPDIR="+dir)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			stdin, err := cmd.StdinPipe()
			require.NoError(t, err)
			cmd.Stderr = os.Stderr
			require.NoError(t, cmd.Start())

			var said strings.Builder
			lines := bufio.NewScanner(stdout)
			var namespaces []string
			for lines.Scan() {
				said.WriteString(lines.Text() + "\n")
				if namespace, ok := strings.CutPrefix(lines.Text(), "namespace "); ok {
					namespaces = append(namespaces, namespace)
				}
				if lines.Text() != "busy" {
					continue
				}
				assert.NotEmpty(t, inNamespaces(namespaces), "the hosts' processes can be seen")
				if how == "killed" {
					require.NoError(t, cmd.Process.Kill())
				}
				stdin.Close()
			}
			err = cmd.Wait()
			assert.Equal(t, how == "passes", err == nil, "%v\n%s", err, &said)
			assert.Len(t, namespaces, 8, said.String())
			if how == "fails" {
				assert.Contains(t, said.String(), "this is in the log", "a failing test prints the logs")
			}

			hosts.Eventually(t, "no process in the hosts' namespaces", func() (string, bool) {
				left := inNamespaces(namespaces)
				return strings.Join(left, "\n"), len(left) == 0
			})
			assert.NotContains(t, string(must(os.ReadFile("/proc/mounts"))), dir)
			if how != "killed" {
				left := must(os.ReadDir(dir))
				assert.Empty(t, left, "files")
			}
		})
	}
}

const helperVariable = "LOCKFS_TEST_HELPER"

// TestHelperBusyHosts is the process that TestNothingIsLeftBehind runs.
func TestHelperBusyHosts(t *testing.T) {
	how := os.Getenv(helperVariable)
	if how == "" {
		return
	}
	net := hosts.New(t)
	for _, h := range []*hosts.Host{net.Host("a"), net.Host("b")} {
		mount := filepath.Join(net.Dir(), "mount")
		h.MustRun(t, "sh", "-c", "mkdir -p "+mount+" && mount -t tmpfs tmpfs "+mount)
		h.MustRun(t, "sh", "-c", "sleep 1000 > /dev/null 2>&1 &")
		h.Start("sh", "-c", "echo this is in the log; cd "+mount+"; trap '' TERM; sleep 1000")
		links := h.MustRun(t, "sh", "-c", "cd /proc/1/ns; readlink net mnt pid uts")
		for namespace := range strings.Lines(links) {
			fmt.Print("namespace ", namespace)
		}
	}
	net.Host("b").Freeze()
	fmt.Println("busy")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if how == "fails" {
		t.Fail()
	}
}

// inNamespaces names the threads that are in any of some namespaces.
func inNamespaces(namespaces []string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/ns/*")
	for _, link := range links {
		namespace, err := os.Readlink(link)
		for _, wanted := range namespaces {
			if err == nil && namespace == wanted {
				found = append(found, link+" "+namespace)
			}
		}
	}
	return found
}

// state is the letter of a process's state in /proc, of all its threads that of
// the first.
func state(t *testing.T, p *hosts.Process) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	require.NoError(t, err)
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
