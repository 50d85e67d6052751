package packages

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestRPM is the same life with rpm, in short: what differs are the arguments of the scripts.
func TestRPM(t *testing.T) {
	t.Parallel()
	r := newRoot(t, hosts.New(t), "a")
	first, second := r.bring(t, the(t, released(t, older), "*.rpm")), r.bring(t, the(t, released(t, newer), "*.rpm"))
	rpm := func(args ...string) (string, error) {
		return r.run("rpm", append([]string{"--force-debian", "--nodeps", "--dbpath", "/tmp/rpm"}, args...)...)
	}
	said, err := rpm("-i", first)
	require.NoError(t, err)
	require.Contains(t, said, "`lockfs up TOKEN` makes this host one of a cluster")
	r.mustRun(t, "lockfs", "up", "--bootstrap", "--addr", r.Addr()+":7420")
	r.sh(t, `echo LOCKFS_MAX_BYTES=300M >> `+settingsFile+`; chmod 1777 /locks; set -C; echo held > /locks/deploy.lock`)

	said, err = rpm("-U", second)
	require.NoError(t, err)
	require.Contains(t, said, "goes on with the version before")
	require.Equal(t, "held\n", r.mustRun(t, "cat", "/locks/deploy.lock"))
	require.Equal(t, "1777\n", r.mustRun(t, "stat", "-c", "%a", "/locks"), "it is everybody's")
	require.Contains(t, r.mustRun(t, "cat", settingsFile), "LOCKFS_MAX_BYTES=300M")

	user := r.Start("chroot", testcluster.RootDir, "sh", "-c", `cd /locks; echo begun; exec sleep 1000`)
	require.NoError(t, user.WaitOutput("begun"))
	_, err = rpm("-e", "lockfs")
	require.ErrorContains(t, err, "/locks is in use")
	user.Kill()
	_ = user.Wait()
	_, err = rpm("-e", "lockfs")
	require.NoError(t, err)
	require.Empty(t, r.daemons())
	r.sh(t, `! test -e /usr/bin/lockfs; ! test -e /locks; test -e /var/lib/lockfs; grep -q LOCKFS_MAX_BYTES /etc/lockfs/lockfs.env*`)
}
