package packages

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// fstabMounts are mount points of /etc/fstab that are there before lockfs is installed.
var fstabMounts = []string{"/srv/locks", "/srv/more locks"}

func (r *root) configureMounts(t testing.TB) {
	t.Helper()
	r.sh(t, `mkdir -p /srv/locks '/srv/more locks'
		printf '10.0.0.1 /srv/locks lockfs noauto 0 0\n10.0.0.1 /srv/more\\040locks lockfs noauto 0 0\n' > /etc/fstab`)
}

// requireProtected checks whether root can create files in the directories while lockfs is not mounted.
func (r *root) requireProtected(t testing.TB, protected bool) {
	t.Helper()
	for _, dir := range fstabMounts {
		_, err := r.run("touch", dir+"/lock")
		if protected {
			require.ErrorContains(t, err, dir)
		} else {
			require.NoError(t, err)
		}
	}
}

// TestDebianPackageProtectsMountPoints from its installation to its purge.
func TestDebianPackageProtectsMountPoints(t *testing.T) {
	t.Parallel()
	r := newRoot(t, hosts.New(t), "a")
	first, second := r.bring(t, the(t, released(t, older), "*.deb")), r.bring(t, the(t, released(t, newer), "*.deb"))
	r.configureMounts(t)
	r.requireProtected(t, false)
	r.sh(t, `rm /srv/*/lock`)
	r.mustDpkg(t, "-i", first)
	r.requireProtected(t, true)
	r.mustDpkg(t, "-i", second)
	r.requireProtected(t, true)
	r.mustDpkg(t, "-r", "lockfs")
	r.requireProtected(t, true)
	r.mustDpkg(t, "--purge", "lockfs")
	r.requireProtected(t, false)
	r.sh(t, `! test -e /etc/lockfs`)
}

// TestRPMProtectsMountPoints until it is removed: rpm knows no purge.
func TestRPMProtectsMountPoints(t *testing.T) {
	t.Parallel()
	r := newRoot(t, hosts.New(t), "a")
	first, second := r.bring(t, the(t, released(t, older), "*.rpm")), r.bring(t, the(t, released(t, newer), "*.rpm"))
	rpm := func(args ...string) {
		t.Helper()
		r.mustRun(t, "rpm", append([]string{"--force-debian", "--nodeps", "--dbpath", "/tmp/rpm"}, args...)...)
	}
	r.configureMounts(t)
	rpm("-i", first)
	r.requireProtected(t, true)
	rpm("-U", second)
	r.requireProtected(t, true)
	rpm("-e", "lockfs")
	r.requireProtected(t, false)
}
