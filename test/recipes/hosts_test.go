package recipes

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A host on which somebody follows a recipe: a system that he may change at will, with the locks at /locks, and at /srv a disk that all
// hosts share.
type host struct {
	*testcluster.Root
	scene *scene
}

// A scene is what a page is played in.
type scene struct {
	t       testing.TB
	page    *page
	dir     string // what the hosts have at /srv
	a, b, c *host
	all     []*host
	more    []string // variables of all that is run
}

// newHosts starts a cluster whose three servers have the locks at /locks.
func newHosts(t testing.TB) (all []*host, dir string) {
	t.Helper()
	cluster := testcluster.StartCluster(t, 3)
	dir = filepath.Join(cluster.Net.Dir(), "srv")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for _, node := range cluster.Nodes {
		h := &host{Root: testcluster.NewRoot(t, node.Host, "/", cluster.Net.Dir())}
		h.MustRun(t, "sh", "-ec", `
			mkdir -p "$1/locks" "$1/run/lockfs" "$1/root/work"
			mount --bind "$2" "$1/locks"
			mount --bind "$3" "$1/srv"
			mount --bind /run/lockfs "$1/run/lockfs"
			touch "$1/usr/local/bin/lockfs"
			mount --bind "$4" "$1/usr/local/bin/lockfs"`,
			"sh", testcluster.RootDir, cluster.Mount, dir, cluster.Program)
		all = append(all, h)
	}
	return all, dir
}

// in is a command in the directory in which people type, with nothing of the environment of the test.
func (h *host) in(script string) []string {
	environment := []string{
		"-i", "-C", "/root/work", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
	}
	return testcluster.In("env", slices.Concat(environment, h.scene.more, []string{"bash", "-ec", script})...)
}

// run does what is typed, and answers what is printed on standard output.
func (h *host) run(script string) (string, error) {
	command := h.in(script)
	return h.Run(command[0], command[1:]...)
}

func (h *host) must(script string) string {
	h.scene.t.Helper()
	out, err := h.run(script)
	require.NoError(h.scene.t, err)
	return out
}

// start begins what is typed.
func (h *host) start(script string) *hosts.Process {
	h.scene.t.Helper()
	command := h.in(script)
	return h.Start(command[0], command[1:]...)
}

// write puts files to where they belong, executable as far as they are programs. Relative paths are where people type.
func (h *host) write(files map[string]string) {
	h.scene.t.Helper()
	for name, text := range files {
		if !path.IsAbs(name) {
			name = "/root/work/" + name
		}
		h.must(`mkdir -p "$(dirname ` + name + `)"; printf %s ` + quoted(text) + ` > ` + name + `; chmod 755 ` + name)
	}
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// programs are what the page leaves to its reader, on all hosts: shell scripts by their names.
func (s *scene) programs(scripts map[string]string) {
	s.t.Helper()
	for name, script := range scripts {
		for _, h := range s.all {
			h.write(map[string]string{"/usr/local/bin/" + name: "#!/bin/sh\n" + script + "\n"})
		}
	}
}

// alone is a script that notes where and with which words it runs, and if another runs at the same time.
const alone = `mkdir /srv/alone 2> /dev/null || echo "$(hostname) is not alone" >> /srv/wrong
	echo "$(hostname) $*" >> /srv/log
	sleep 0.1
	rmdir /srv/alone`

// busy is a script that notes the same and goes on until it may end.
const busy = `echo "$(hostname) $*" >> /srv/log
	until [ -e /srv/enough ]; do sleep 0.05; done`

// files puts files of the page on all hosts.
func (s *scene) files(paths ...string) {
	s.t.Helper()
	for _, path := range paths {
		for _, h := range s.all {
			h.write(map[string]string{path: s.page.file(s.t, path)})
		}
	}
}

// block is one of the page, by some words in it.
func (s *scene) block(words string) string {
	s.t.Helper()
	return s.page.block(s.t, words)
}

// everywhere does the same on all hosts at the same time, and requires that it ends well.
func (s *scene) everywhere(script string) {
	s.t.Helper()
	var begun []*hosts.Process
	for _, h := range s.all {
		begun = append(begun, h.start(script))
	}
	for _, p := range begun {
		require.NoError(s.t, p.Wait(), p.Log())
	}
}

// log is what the programs noted in a file on the shared disk, by lines.
func (s *scene) log(name string) []string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if !os.IsNotExist(err) {
		require.NoError(s.t, err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// await waits until the programs have noted so many lines.
func (s *scene) await(count int) []string {
	s.t.Helper()
	var lines []string
	hosts.Eventually(s.t, strconv.Itoa(count)+" lines of the programs", func() (string, bool) {
		lines = s.log("log")
		return fmt.Sprint(lines), len(lines) >= count
	})
	return lines
}

// enough lets all that is busy end.
func (s *scene) enough() {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "enough"), nil, 0o644))
}

// eventually waits until what is typed ends well.
func (h *host) eventually(script string) {
	h.scene.t.Helper()
	hosts.Eventually(h.scene.t, script, func() (string, bool) {
		out, err := h.run(script)
		return fmt.Sprint(out, err), err == nil
	})
}

// clear removes what a page has left on the disk that the hosts share.
func (s *scene) clear() {
	s.t.Helper()
	s.a.must("rm -rf /srv/*")
}
