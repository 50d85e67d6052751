package operation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// greed is what one user does to others.
const greed = `
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
import encodings.idna, socket

# Locks single bytes of a file until that fails, and keeps what it has.
def lockMany(name):
    global kept
    kept = open(name, 'r+')
    for number in range(0, 1000, 2):
        try:
            fcntl.lockf(kept, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError as error:
            return '%s after %d' % (NAMES[error.errno], number // 2)
    return 'no end'

# Locks another range of the same file, and a file of its own.
def lockOnce(name, at):
    with open(name, 'r+') as f:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
    os.mkdir(me + '.lock')
    os.rmdir(me + '.lock')
    with open(me + '.own', 'w') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
    os.unlink(me + '.own')

# Opens streams of events on a socket, and keeps them; returns the responses' codes.
def streams(path, count):
    global open_streams
    open_streams, codes = [], []
    for _ in range(count):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.sendall(b'GET /v1/events HTTP/1.1\r\nHost: lockfs\r\n\r\n')
        codes.append(s.recv(4096).split()[1].decode())
        open_streams.append(s)
    return ' '.join('%s:%d' % (code, codes.count(code)) for code in sorted(set(codes)))

# Opens connections to a port, and asks nothing.
def idle(host, port, count):
    global idlers
    idlers = [socket.create_connection((host, port)) for _ in range(count)]
`

// TestOneUserTakesNothingFromOthers: an ordinary user takes all that it gets of kernel locks, live streams and connections. Another user of the
// host, its root, and a user of another host work as before.
func TestOneUserTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	c, _ := suite.StartInMemory(t, "--max-locks-per-user", "50", "--max-locks-per-file", "40")
	n := c.Nodes[0]
	elsewhere := c.AddClient(t, "elsewhere")
	c.MountOn(t, elsewhere, c.Servers())
	user := func(h *hosts.Host, uid int, name string) suite.Actor {
		a := suite.StartActor(t, h, c.Mount)
		a.Must(fmt.Sprintf("exec(%q); exec(%q); be(%d, %q)", users, greed, uid, name))
		return a
	}
	n.Host.MustRun(t, "sh", "-ec", `for name in "$@"; do : > "$name"; chmod 666 "$name"; done`, "sh", c.Path("many"), c.Path("more"))
	greedy := user(n.Host, 1000, "greedy")
	modest, root, far := user(n.Host, 1001, "modest"), user(n.Host, 0, "root"), user(elsewhere, 1001, "far")
	witnesses := []suite.Actor{modest, root, far}

	greedy.Require("print(lockMany('many'))", "ENOLCK after 40")
	again := user(n.Host, 1000, "again")
	again.Require("print(lockMany('more'))", "ENOLCK after 10")
	for i, w := range witnesses {
		w.Require(fmt.Sprintf("say(lockOnce, 'many', %d)", 2001+i), "ok")
	}
	var listed struct {
		Budgets []struct {
			Budget, Host, Path, Setting string
			UID                         *uint32
			Used, Most                  uint64
		}
	}
	out, err := n.Lockfs("quota", "list", "--json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(out), &listed))
	found := 0
	for _, b := range listed.Budgets {
		if b.UID != nil && *b.UID == 1000 && b.Budget == "flock and fcntl locks" {
			require.NotEmpty(t, b.Setting)
			require.Contains(t, []uint64{40, 10, 50}, b.Used)
			found++
		}
	}
	require.Equal(t, 3, found, "%s: of the host, and in two files", out)

	socket := strings.TrimSpace(n.Host.MustRun(t, "sh", "-c", "find /run/lockfs -name 'page-*' -type s | head -n 1"))
	greedy.Require(fmt.Sprintf("print(streams(%q, 40))", socket), "200:16 429:24")
	modest.Require(fmt.Sprintf("print(streams(%q, 1))", socket), "200:1")
	root.Require(fmt.Sprintf("print(streams(%q, 1))", socket), "200:1")

	address, port, _ := strings.Cut(n.HTTPAddr(), ":")
	greedy.Must(fmt.Sprintf("idle(%q, %s, 1100)", address, port))
	for range 3 {
		_, err := n.Get("/healthz")
		require.NoError(t, err)
		_, err = n.Get("/metrics")
		require.NoError(t, err)
	}
	for i, w := range witnesses {
		w.Require(fmt.Sprintf("say(lockOnce, 'many', %d)", 3001+i), "ok")
	}
}
