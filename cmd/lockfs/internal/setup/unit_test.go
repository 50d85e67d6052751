package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/identity"
)

func TestUnits(t *testing.T) {
	text := unitText(identity.Client, "/opt/my programs/lockfs%1", "")
	require.Contains(t, text, "\nExecStart=\"/opt/my programs/lockfs%%1\" mount ${LOCKFS_MOUNT}\n")
	require.Contains(t, text, "\nEnvironmentFile=/etc/lockfs/lockfs.env\n")
	text = unitText(identity.Server, "/usr/bin/lockfs", "/srv/of $us/50%")
	require.Contains(t, text, "\nExecStart=/usr/bin/lockfs server\n")
	require.Contains(t, text, "\nDescription=lockfs server\n")
	require.Contains(t, text, "\nRestartPreventExitStatus=4\n")
	require.Contains(t, text, "\nRequiresMountsFor=\"/srv/of $us/50%%\"\n")
	require.Equal(t, "lockfs-server.service", unitName(identity.Server))
	require.Equal(t, "lockfs-mount.service", unitName(identity.Client))
}

// TestSystemdTakesTheUnits has systemd itself read them, with a program that is there.
func TestSystemdTakesTheUnits(t *testing.T) {
	program := filepath.Join(t.TempDir(), "lock fs")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	for _, role := range []identity.Role{identity.Server, identity.Client} {
		file := filepath.Join(t.TempDir(), unitName(role))
		require.NoError(t, os.WriteFile(file, []byte(unitText(role, program, "/srv/lock fs")), 0o644))
		said, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput()
		require.NoError(t, err, string(said))
		require.NotContains(t, string(said), filepath.Base(file), strings.TrimSpace(string(said)))
	}
}

// TestUnitsHaveOneNameToo: whatever the host is, lockfs.service is what it runs, as long as that is enabled.
func TestUnitsHaveOneNameToo(t *testing.T) {
	root := t.TempDir()
	units := filepath.Join(root, "etc/systemd/system")
	require.NoError(t, os.MkdirAll(units, 0o755))
	systemctl := func(args ...string) {
		said, err := exec.Command("systemctl", append([]string{"--root=" + root}, args...)...).CombinedOutput()
		require.NoError(t, err, string(said))
	}
	for _, role := range []identity.Role{identity.Server, identity.Client} {
		require.NoError(t, os.WriteFile(filepath.Join(units, unitName(role)), []byte(unitText(role, "/usr/bin/lockfs", defaultData)), 0o644))
		systemctl("enable", unitName(role))
		target, err := os.Readlink(filepath.Join(units, "lockfs.service"))
		require.NoError(t, err)
		require.Equal(t, unitName(role), filepath.Base(target))
		systemctl("disable", unitName(role))
		require.NoFileExists(t, filepath.Join(units, "lockfs.service"))
	}
}
