package packages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

const settingsFile = "/etc/lockfs/lockfs.env"

// TestDebianPackage is the life of a package: installed, used, upgraded under a lock that is held, removed once nobody uses it,
// installed again on its data, purged.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	r := newRoot(t, net, "a")
	first, second := r.bring(t, the(t, released(t, older), "*.deb")), r.bring(t, the(t, released(t, newer), "*.deb"))

	require.Contains(t, r.mustDpkg(t, "-i", first), "`lockfs up TOKEN` makes this host one of a cluster")
	require.Equal(t, older+"\n", r.mustRun(t, "dpkg-query", "-W", "-f", "${Version}\n", "lockfs"))
	require.Contains(t, r.mustRun(t, "lockfs", "version"), "lockfs")
	r.sh(t, `test -d /locks; test -x /sbin/mount.lockfs; mount.lockfs -f 10.0.0.1 /locks; gzip -dc /usr/share/man/man1/lockfs-up.1.gz | grep -q '^.TH'
		[ "$(stat -c %a `+settingsFile+`)" = 600 ]`)
	require.Contains(t, r.mustRun(t, "bash", "-c", `. /usr/share/bash-completion/completions/lockfs; complete -p lockfs`), "__start_lockfs")
	said, err := r.run("lockfs", "status")
	require.ErrorContains(t, err, "lockfs up", "the package alone is no cluster: %s", said)

	r.mustRun(t, "lockfs", "up", "--bootstrap", "--addr", r.Addr()+":7420")
	r.sh(t, `echo LOCKFS_MAX_BYTES=300M >> `+settingsFile+`; set -C; echo held > /locks/deploy.lock`)
	held := r.Start("chroot", testcluster.RootDir, "sh", "-c", `cd /locks; exec 9> flock; flock 9; echo begun; exec sleep 1000`)
	require.NoError(t, held.WaitOutput("begun"))
	daemon := r.daemons()
	require.NotEmpty(t, daemon)

	t.Run("Upgrade", func(t *testing.T) {
		require.Contains(t, r.mustDpkg(t, "-i", second), "goes on with the version before")
		require.Equal(t, newer+"\n", r.mustRun(t, "dpkg-query", "-W", "-f", "${Version}\n", "lockfs"))
		require.Contains(t, r.mustRun(t, "cat", settingsFile), "LOCKFS_MAX_BYTES=300M")
		require.Equal(t, daemon, r.daemons())
		_, err := r.run("flock", "--nonblock", "/locks/flock", "true")
		require.Error(t, err, "the lock is held on")
		require.Contains(t, r.mustRun(t, "lockfs", "up"), "it now runs the newest program")
		require.Equal(t, daemon, r.daemons())
		_, err = r.run("flock", "--nonblock", "/locks/flock", "true")
		require.Error(t, err, "the lock is held on")
		require.Contains(t, r.mustRun(t, "lockfs", "up"), "everything is as it should be")
	})
	t.Run("RemovalRefusesInUse", func(t *testing.T) {
		_, err := r.dpkg("-r", "lockfs")
		require.ErrorContains(t, err, "/locks is in use")
		require.ErrorContains(t, err, "sleep (pid ")
		require.Equal(t, "held\n", r.mustRun(t, "cat", "/locks/deploy.lock"))
		held.Kill()
		_ = held.Wait()
	})
	t.Run("RemoveAndInstall", func(t *testing.T) {
		r.mustDpkg(t, "-r", "lockfs")
		require.Empty(t, r.daemons())
		r.sh(t, `! test -e /usr/bin/lockfs; ! test -e /locks; grep -q LOCKFS_MAX_BYTES `+settingsFile)
		r.mustDpkg(t, "-i", second)
		r.mustRun(t, "lockfs", "up")
		require.Equal(t, "held\n", r.mustRun(t, "cat", "/locks/deploy.lock"))
		require.Contains(t, r.mustRun(t, "cat", settingsFile), "LOCKFS_MAX_BYTES=300M")
	})
	t.Run("Purge", func(t *testing.T) {
		require.Contains(t, r.mustDpkg(t, "--purge", "lockfs"), "/var/lib/lockfs has the data of a server, and stays")
		for _, path := range r.left(t) {
			require.True(t, strings.HasPrefix(path+"/", "/var/lib/lockfs/"), path)
		}
		r.mustRun(t, "rm", "-r", "/var/lib/lockfs")
		r.mustDpkg(t, "-i", second)
		r.mustDpkg(t, "--purge", "lockfs")
		require.Empty(t, r.left(t))
	})
}
