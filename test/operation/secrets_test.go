package operation

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// secretsSeeker reads the command lines and environments of all processes again and again, or once, and prints the secrets in them: join tokens
// and addresses that log in to the page.
const secretsSeeker = `
import os, re, sys
secret = re.compile(r"lockfs-(client|server)-[A-Za-z0-9_-]{40}|/login/\w+")
print("seeking", flush=True)
while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    text = file.read().decode(errors="replace")
            except OSError:
                continue
            if int(pid) != os.getpid() and secret.search(text):
                print(name, text.replace("\0", " "), flush=True)
    if sys.argv[1] == "once":
        break
`

// seeker is the command line of another user who looks for secrets.
func seeker(how string) []string { return nobody("/usr/bin/python3", "-c", secretsSeeker, how) }

// seekSecrets has another user look for secrets on a host while do runs.
func seekSecrets(t testing.TB, h *hosts.Host, do func()) {
	t.Helper()
	seeks := h.Start("setpriv", seeker("always")...)
	require.NoError(t, seeks.WaitOutput("seeking\n"))
	do()
	seeks.Kill()
	require.Equal(t, "seeking\n", seeks.Stdout())
}

// TestOtherUsersReadNoSecret in what /proc shows of processes: of a server and a mount that join, of lockfs up, of guards, of what goes on with a
// mount after an upgrade and a crash, and of the browser that lockfs ui starts. A token that was an argument is gone once the program runs.
func TestOtherUsersReadNoSecret(t *testing.T) {
	t.Parallel()
	network := hosts.New(t)
	var all []*upHost
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all = append(all, newUpHost(t, network, name))
	}
	a, b, c, d, e, f := all[0], all[1], all[2], all[3], all[4], all[5]
	a.mustLockfs(t, "up", "--bootstrap")
	token := func(h *upHost, role string) string {
		text := strings.TrimSpace(a.mustLockfs(t, "token", "create", "--role", role))
		h.MustRun(t, "sh", "-c", `umask 077; cat > /run/token << 'END'`+"\n"+text+"\nEND\n")
		return text
	}

	token(b, "server")
	seekSecrets(t, b.Host, func() { b.mustLockfs(t, "up", "@/run/token") })

	token(c, "server")
	seekSecrets(t, c.Host, func() {
		server := c.Start("env", "LOCKFS_SUPERVISED=1", c.program, "server", "--data", "/mnt/data", "--addr", c.Addr()+":7420", "--mount", c.mount,
			"--token", "@/run/token")
		require.NoError(t, server.WaitOutput("lockfs: c ready"))
	})

	token(d, "client")
	seekSecrets(t, d.Host, func() {
		mount := d.Start("sh", "-c", `LOCKFS_UNATTENDED=1 exec "$0" mount --token - "$1" < /run/token`, d.program, d.mount)
		require.NoError(t, mount.WaitOutput("lockfs: ready at"))
		d.MustRun(t, "pkill", "-HUP", "-f", mountProcess)
		require.NoError(t, mount.WaitOutput(goneOn))
		d.MustRun(t, "pkill", "-9", "-f", mountProcess)
		hosts.Eventually(t, "the mount goes on after a crash", func() (string, bool) {
			return mount.Log(), strings.Count(mount.Log(), goneOn) == 2
		})
	})

	e.mustLockfs(t, "up", token(e, "client"))
	given := f.Start(f.program, "mount", "--token", token(f, "client"), f.mount)
	require.NoError(t, given.WaitOutput("lockfs: ready at"))
	for _, h := range []*upHost{e, f} {
		require.Equal(t, "seeking\n", h.MustRun(t, "setpriv", seeker("once")...))
	}

	a.MustRun(t, "sh", "-ec", `mkdir /mnt/bin; touch /run/browses
		printf '#!/bin/sh\nwhile [ -e /run/browses ]; do sleep 0.1; done\n' > /mnt/bin/xdg-open; chmod +x /mnt/bin/xdg-open`)
	seekSecrets(t, a.Host, func() {
		a.MustRun(t, "env", "PATH=/mnt/bin:/usr/bin:/bin", "DISPLAY=:1", "XDG_RUNTIME_DIR=/run", a.program, "ui")
		browser := strings.Fields(strings.ReplaceAll(a.MustRun(t, "sh", "-c", `cat "/proc/$(pgrep -f "^/bin/sh .*xdg-open")/cmdline"`), "\x00", " "))
		page := browser[len(browser)-1]
		require.Equal(t, "open.html", filepath.Base(page), browser)
		require.Contains(t, a.MustRun(t, "cat", page), "/login/")
		_, err := a.Run("setpriv", nobody("cat", page)...)
		require.ErrorContains(t, err, "Permission denied")
	})
	a.MustRun(t, "rm", "/run/browses")
}
