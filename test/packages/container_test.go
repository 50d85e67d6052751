package packages

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// engine runs containers of the released image on one host, below a directory that is a mount of its own there, as hostPath and -v
// have it. In it is the mount of the locks.
type engine struct {
	*hosts.Host
	image string // its root
	mnt   string
	run   string // what crun keeps
}

func newEngine(t testing.TB, net *hosts.Net) *engine {
	t.Helper()
	e := &engine{net.Host("a"), filepath.Join(net.Dir(), "image"), filepath.Join(net.Dir(), "mnt"), filepath.Join(net.Dir(), "crun")}
	unpackImage(t, the(t, released(t, newer), "*.oci.tar"), e.image)
	require.NoError(t, os.WriteFile(filepath.Join(e.image, "tmp/never"), nil, 0o600))
	for _, dir := range libraries {
		require.NoError(t, os.MkdirAll(filepath.Join(e.image, dir), 0o755))
	}
	// crun refuses machines that have cgroups of both versions, and this one may.
	e.MustRun(t, "sh", "-ec", `mkdir "$1"; mount --bind "$1" "$1"; mount --make-shared "$1"; mount -t cgroup2 of-this-host /sys/fs/cgroup`, "sh", e.mnt)
	return e
}

// libraries are what the program under test may need of the host, which is not static as the one that is released.
var libraries = []string{"/lib", "/lib64"}

// unpackImage is what podman and containerd do with an image of one layer: index, manifest, layer.
func unpackImage(t testing.TB, file, to string) {
	t.Helper()
	dir := t.TempDir()
	unpack(t, file, false, dir)
	type descriptor struct{ Digest string }
	var index struct{ Manifests []descriptor }
	var manifest struct{ Layers []descriptor }
	read := func(path string, into any) {
		content, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(content, into))
	}
	blob := func(d descriptor) string { return filepath.Join("blobs/sha256", d.Digest[len("sha256:"):]) }
	read("index.json", &index)
	require.Len(t, index.Manifests, 1)
	read(blob(index.Manifests[0]), &manifest)
	require.Len(t, manifest.Layers, 1)
	unpack(t, filepath.Join(dir, blob(manifest.Layers[0])), true, to)
}

func unpack(t testing.TB, file string, packed bool, to string) {
	t.Helper()
	source, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = source.Close() }()
	var content io.Reader = source
	if packed {
		content, err = gzip.NewReader(source)
		require.NoError(t, err)
	}
	entries := tar.NewReader(content)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(to, header.Name)
		if header.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, header.FileInfo().Mode()))
			continue
		}
		content, err := io.ReadAll(entries)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, header.FileInfo().Mode()))
	}
}

// crun calls the runtime. It has no cgroups: those are not what is tested.
func (e *engine) crun(args ...string) []string {
	return append([]string{"crun", "--root", e.run, "--cgroup-manager", "disabled"}, args...)
}

// container makes one that runs a command of the image, to which the mounts of the host come as propagation says.
func (e *engine) container(t testing.TB, name, propagation string, command ...string) (run []string) {
	t.Helper()
	type object = map[string]any
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"mode=755"}},
		{"destination": "/locks", "type": "bind", "source": e.mnt, "options": []string{"rbind", propagation}},
	}
	for _, dir := range libraries {
		mounts = append(mounts, object{"destination": dir, "type": "bind", "source": dir, "options": []string{"bind", "ro"}})
	}
	config := object{
		"ociVersion": "1.0.2",
		"process": object{
			"args": command, "cwd": "/", "env": []string{"PATH=/usr/bin"}, "user": object{"uid": 0, "gid": 0},
		},
		"root":     object{"path": e.image, "readonly": true},
		"hostname": name,
		"mounts":   mounts,
		"linux": object{
			"namespaces":        []object{{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}},
			"rootfsPropagation": "rslave", // as podman and containerd say where a mount is to come from the host
		},
	}
	text, err := json.Marshal(config)
	require.NoError(t, err)
	bundle := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644))
	return e.crun("run", "--bundle", bundle, name)
}

// lockfs is a command of the host, whose daemon is asked by no other.
func (e *engine) lockfs(t testing.TB, args ...string) []string {
	return append([]string{"env", "LOCKFS_SOCKET_DIR=" + e.mnt + ".run", testcluster.Program(t)}, args...)
}

// serve starts lockfs on the host, with the locks at DIR/locks.
func (e *engine) serve(t testing.TB) *hosts.Process {
	t.Helper()
	dev := e.lockfs(t, "dev", filepath.Join(e.mnt, "locks"), "--data", e.mnt+".data")
	p := e.Start(dev[0], dev[1:]...)
	require.NoError(t, p.WaitOutput("ready at"))
	return p
}

// TestContainers: programs in containers of one host exclude each other by the mount of the host, are known by their processes, and
// find a mount that comes anew where mounts of the host come to them.
func TestContainers(t *testing.T) {
	t.Parallel()
	e := newEngine(t, hosts.New(t))
	daemon := e.serve(t)
	rule := e.lockfs(t, "rule", "set", "job", "--holder", "creator")
	e.MustRun(t, rule[0], rule[1:]...)
	e.MustRun(t, "sh", "-c", `set -C; echo > "$1/locks/gate"`, "sh", e.mnt)
	job := func(name string) []string {
		return e.container(t, name, "rslave", "/usr/bin/lockfs", "run", "--nonblock", "/locks/locks/job", "--", "/usr/bin/lockfs", "wait", "/locks/locks/gate")
	}
	first := job("first")
	holds := e.Start(first[0], first[1:]...)
	hosts.Eventually(t, "the lock of the first container", func() (string, bool) {
		text, err := e.Run("cat", filepath.Join(e.mnt, "locks/job"))
		return fmt.Sprint(text, err), err == nil && text != ""
	})
	second := job("second")
	_, err := e.Run(second[0], second[1:]...)
	require.ErrorContains(t, err, "exit status 75", "it is held")

	kill := e.crun("kill", "first", "KILL")
	e.MustRun(t, kill[0], kill[1:]...)
	_ = holds.Wait()
	e.MustRun(t, "rm", filepath.Join(e.mnt, "locks/gate"))
	third := job("third")
	hosts.Eventually(t, "the lock of a container that was killed", func() (string, bool) {
		text, err := e.Run(third[0], third[1:]...)
		return fmt.Sprint(text, err), err == nil
	})

	for _, propagation := range []string{"rslave", "rprivate"} {
		stays := e.container(t, propagation, propagation, "/usr/bin/lockfs", "wait", "/tmp/never")
		e.Start(stays[0], stays[1:]...)
	}
	inside := func(name string) (string, error) {
		run := e.crun("exec", name, "/usr/bin/lockfs", "run", "/locks/locks/again", "--", "/usr/bin/lockfs", "version")
		return e.Run(run[0], run[1:]...)
	}
	for _, name := range []string{"rslave", "rprivate"} {
		hosts.Eventually(t, name+" has the locks", func() (string, bool) {
			text, err := inside(name)
			return fmt.Sprint(text, err), err == nil
		})
	}
	require.NoError(t, daemon.Stop())
	e.serve(t)
	_, err = inside("rslave")
	require.NoError(t, err)
	_, err = inside("rprivate")
	require.ErrorContains(t, err, "the lockfs daemon of this mount has ended")
}
