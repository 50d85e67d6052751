package primitives

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/conformance"
	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// Of the large directory: where that is quick, in an ordinary run, and with more faults (LOCKFS_TEST_SOAK).
const (
	fewEntries  = 2_000
	someEntries = 20_000
	mostEntries = 100_000
)

// conformancePatience is for the most entries, made one after the other.
const conformancePatience = 5 * time.Minute

// TestConformance does the cases of package conformance on file systems of the kernel, to see that they are
// right, and then on lockfs. Each difference that lockfs is known to have must be met.
func TestConformance(t *testing.T) {
	c, host := testcluster.StartInMemory(t)
	plan := conformance.Plan{Outside: filepath.Join(c.Net.Dir(), "outside"), Entries: fewEntries}
	require.NoError(t, os.Mkdir(plan.Outside, 0o755))
	t.Run("tmpfs", func(t *testing.T) {
		plan := plan
		plan.Root = testcluster.LocalDir(t, c, "tmpfs", host, `mount -t tmpfs -o noatime,mode=777 local "$1"`)
		requireConformance(t, host, plan)
	})
	if isExt4(t, c.Net.Dir()) {
		t.Run("ext4", func(t *testing.T) {
			plan := plan
			plan.Root = testcluster.LocalDir(t, c, "ext4", host, `mount --bind "$1" "$1"; mount -o remount,bind,noatime "$1"; chmod 777 "$1"`)
			requireConformance(t, host, plan)
		})
	}
	t.Run("lockfs", func(t *testing.T) {
		plan := plan
		plan.Root, plan.Lockfs = c.Mount, true
		plan.Entries = min(testcluster.Faults(someEntries), mostEntries)
		requireConformance(t, host, plan)
	})
}

// TestConformanceWhenFull does what is done where there are inodes no more.
func TestConformanceWhenFull(t *testing.T) {
	t.Parallel()
	c, host := testcluster.StartInMemory(t, "--max-inodes", "50")
	plan := conformance.Plan{Set: conformance.Full}
	t.Run("tmpfs", func(t *testing.T) {
		plan := plan
		plan.Root = testcluster.LocalDir(t, c, "tmpfs", host, `mount -t tmpfs -o mode=777,nr_inodes=50 local "$1"`)
		requireConformance(t, host, plan)
	})
	t.Run("lockfs", func(t *testing.T) {
		plan := plan
		plan.Root, plan.Lockfs = c.Mount, true
		requireConformance(t, host, plan)
	})
}

// TestConformanceReadOnly does what is refused where a mount is read-only.
func TestConformanceReadOnly(t *testing.T) {
	t.Parallel()
	c, host := testcluster.StartInMemory(t)
	plan := conformance.Plan{Set: conformance.ReadOnly}
	t.Run("tmpfs", func(t *testing.T) {
		plan := plan
		plan.Root = testcluster.LocalDir(t, c, "tmpfs", host, `mount -t tmpfs local "$1"; cd "$1"; `+conformance.ReadOnlyScript+`; mount -o remount,ro "$1"`)
		requireConformance(t, host, plan)
	})
	t.Run("lockfs", func(t *testing.T) {
		plan := plan
		plan.Root, plan.Lockfs = c.Mount, true
		host.MustRun(t, "sh", "-ec", `cd "$1"; `+conformance.ReadOnlyScript, "sh", c.Mount)
		reader := c.AddClient(t, "reader")
		require.NoError(t, c.MountOn(t, reader, c.Servers()).Stop(), "it has its identity")
		helper := filepath.Join(c.Net.Dir(), "mount.lockfs")
		require.NoError(t, os.Symlink(c.Program, helper))
		reader.MustRun(t, helper, c.Servers(), c.Mount, "-o", c.MountOption(reader)+",ro")
		requireConformance(t, reader, plan)
	})
}

// TestConformanceBetween has each file system mounted twice, for what is done elsewhere.
func TestConformanceBetween(t *testing.T) {
	t.Parallel()
	c, host := testcluster.StartInMemory(t)
	plan := conformance.Plan{Set: conformance.Between}
	t.Run("tmpfs", func(t *testing.T) {
		plan := plan
		plan.Root = testcluster.LocalDir(t, c, "tmpfs", host, `mount -t tmpfs -o mode=777 local "$1"`)
		plan.Other = testcluster.LocalDir(t, c, "tmpfs2", host, `mount --bind "${1%2}" "$1"`)
		requireConformance(t, host, plan)
	})
	t.Run("lockfs", func(t *testing.T) {
		plan := plan
		plan.Root, plan.Lockfs = c.Mount, true
		plan.Other = testcluster.LocalDir(t, c, "other", host, `mount -t tmpfs session-files /run`)
		mount := host.Start(c.Program, append([]string{"mount", plan.Other}, c.MountFlags(t, host.Name(), c.Servers())...)...)
		require.NoError(t, mount.WaitOutput("lockfs: ready at "))
		requireConformance(t, host, plan)
	})
}

func isExt4(t testing.TB, dir string) bool {
	t.Helper()
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	return st.Type == unix.EXT4_SUPER_MAGIC
}

// requireConformance does all cases of a set on a host. On lockfs they have to meet all known differences.
func requireConformance(t *testing.T, host *hosts.Host, plan conformance.Plan) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), conformancePatience)
	defer cancel()
	output, err := host.RunContext(ctx, program, plan.Args()...)
	require.NoError(t, err)
	var results []conformance.Result
	require.NoError(t, json.Unmarshal([]byte(output), &results), output)
	met := make(map[conformance.Difference]bool)
	for _, result := range results {
		t.Run(result.Name, func(t *testing.T) {
			if result.Took > time.Second {
				t.Log("took", result.Took)
			}
			assert.Empty(t, result.Failure)
		})
		for _, difference := range result.Differences {
			met[difference] = true
		}
	}
	for _, known := range conformance.Differences[plan.Set] {
		assert.Equal(t, plan.Lockfs, met[known], "met: %s", known)
	}
}
