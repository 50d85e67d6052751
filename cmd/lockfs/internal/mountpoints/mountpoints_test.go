package mountpoints

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfiguredMountPoints(t *testing.T) {
	dir := t.TempDir()
	settings, fstab := filepath.Join(dir, "lockfs.env"), filepath.Join(dir, "fstab")
	points, err := configuredIn(settings, dir+"/none", fstab)
	require.NoError(t, err)
	require.Empty(t, points)

	require.NoError(t, os.WriteFile(settings, []byte("# settings\nLOCKFS_ROLE=client\nLOCKFS_MOUNT=\"/srv/my locks/\"\n"), 0o600))
	require.NoError(t, os.WriteFile(fstab, []byte(`# 10.0.0.1 /commented lockfs defaults 0 0
10.0.0.1 /srv/my\040locks lockfs noauto 0 0
10.0.0.1 /second fuse.lockfs _netdev
/dev/sda1 / ext4 defaults 0 1
`), 0o600))
	points, err = configuredIn(settings, dir+"/none", fstab)
	require.NoError(t, err)
	require.Equal(t, []Point{{"/srv/my locks", settings}, {"/second", fstab}}, points)

	require.NoError(t, os.WriteFile(settings, []byte("LOCKFS_MOUNT=/locks\n"), 0o600))
	points, err = configuredIn(settings, dir+"/none", fstab)
	require.NoError(t, err)
	require.Len(t, points, 2, "without a role the host is not set up")
}

func TestRecordOfMountPoints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lockfs", "mount-points")
	change := func(dir string, up, protected bool) {
		t.Helper()
		require.NoError(t, changeRecord(file, dir, func(e *entry) { e.up, e.protected = up, protected }))
	}
	change("/my locks", true, true)
	change("/other", false, true)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "up,protected /my locks\nprotected /other\n", string(text))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm())
	change("/my locks", true, false)
	entries, err := readRecord(file)
	require.NoError(t, err)
	require.Equal(t, []entry{{"/my locks", true, false}, {"/other", false, true}}, entries)
	change("/my locks", false, false)
	change("/other", false, false)
	require.NoFileExists(t, file)
	require.Error(t, changeRecord(file, "/a\nb", func(e *entry) { e.up = true }))
}

func TestLockBelowAMissingMountIsRefused(t *testing.T) {
	dir := t.TempDir()
	points := []Point{{dir, "/etc/fstab"}}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, path := range []string{dir, filepath.Join(dir, "x.lock"), filepath.Join(dir, "missing", "x.lock"), filepath.Join(link, "x.lock"), link} {
		require.ErrorContains(t, requireOf(path, points), "lockfs is not mounted at "+dir+", although /etc/fstab lists it", path)
	}
	for _, path := range []string{dir + "2/x.lock", filepath.Join(t.TempDir(), "x.lock"), "/missing/x.lock"} {
		require.NoError(t, requireOf(path, points), path)
	}
}
