package packages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// rootVariable names a directory with another system than this machine's, as debootstrap makes it, to install packages on.
const rootVariable = "LOCKFS_TEST_ROOT"

// root is a system that packages are installed on.
type root struct {
	*testcluster.Root
	below  string // the system as it was
	shared string // a directory that is seen there too
}

func newRoot(t testing.TB, net *hosts.Net, name string) *root {
	t.Helper()
	below := os.Getenv(rootVariable)
	if below == "" {
		below = "/"
	}
	return &root{testcluster.NewRoot(t, net.Host(name), below, net.Dir()), below, net.Dir()}
}

// run runs a command of that system.
func (r *root) run(name string, args ...string) (string, error) {
	return r.RunIn("env", append([]string{"DEBIAN_FRONTEND=noninteractive", name}, args...)...)
}

func (r *root) mustRun(t testing.TB, name string, args ...string) string {
	t.Helper()
	text, err := r.run(name, args...)
	require.NoError(t, err)
	return text
}

func (r *root) sh(t testing.TB, script string, args ...string) string {
	t.Helper()
	return r.mustRun(t, "sh", append([]string{"-ec", script, "sh"}, args...)...)
}

// bring copies a file to where it is seen there, and answers its path.
func (r *root) bring(t testing.TB, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	to := filepath.Join(r.shared, filepath.Base(file))
	require.NoError(t, os.WriteFile(to, content, 0o644))
	return to
}

// dpkg does something with the package, and answers what it says. It leaves out what takes long: syncing files, and indexing all
// pages of the manual.
func (r *root) dpkg(args ...string) (string, error) {
	return r.run("dpkg", append([]string{"--force-unsafe-io", "--no-triggers"}, args...)...)
}

func (r *root) mustDpkg(t testing.TB, args ...string) string {
	t.Helper()
	text, err := r.dpkg(args...)
	require.NoError(t, err)
	return text
}

// daemons are the pids of those of the packages' program that serve; empty: none.
func (r *root) daemons() string {
	pids, err := r.Run("pgrep", "-f", "^/usr/bin/lockfs (server|mount)")
	if err != nil {
		return ""
	}
	return pids
}

// managers keep books and caches, which are none of a package's files.
var managers = []string{"/var/lib/dpkg", "/var/log", "/var/cache", "/var/lib/systemd", "/etc/ld.so.cache", "/usr/lib/sysimage/rpm", "/var/lib/rpm"}

// left lists what there is that was not there when the system was made.
func (r *root) left(t testing.TB) []string {
	t.Helper()
	var left []string
	changed := testcluster.RootChanges
	for line := range strings.Lines(r.MustRun(t, "find", changed, "!", "-type", "c", "-printf", "%y %P\n")) {
		kind, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		path = "/" + path
		isBook := func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
		if kind == "d" && r.hadDirectory(path) || isBook(r.shared) || strings.HasPrefix(r.shared, path+"/") {
			continue
		}
		if !slices.ContainsFunc(managers, isBook) || filepath.Base(path) == "lockfs.log" {
			left = append(left, path)
		}
	}
	return left
}

func (r *root) hadDirectory(path string) bool {
	info, err := os.Lstat(filepath.Join(r.below, path))
	return err == nil && info.IsDir()
}
