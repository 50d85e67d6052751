package primitives

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestCopiesOfLocks copies locks and data with their extended attributes, onto the mount and away from it. A copy elsewhere may carry
// attributes of lockfs, from a program that asked for them by name.
func TestCopiesOfLocks(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	away := filepath.Join(c.Net.Dir(), "away") // on the disk of the tests
	require.NoError(t, os.Mkdir(away, 0o755))
	sh := testcluster.StartShell(t, c.Nodes[0].Host, c.Mount)
	sh.Must("(set -C; date >made.lock); echo hello >data; setfattr -n user.mine -v yes data; setfattr -n user.mine -v yes made.lock; mkdir dir; cp -a data made.lock dir")
	require.Equal(t, "held\n", sh.Must("getfattr --only-values -n user.lockfs.state made.lock; echo"))
	require.NotContains(t, sh.Must("getfattr -d -m - made.lock data dir"), "lockfs")
	require.Contains(t, sh.Must("getfattr -d -m - made.lock"), `user.mine="yes"`)

	for name, line := range map[string]string{
		"cp":    "cp --preserve=all made.lock data A/; cp --preserve=all A/made.lock B; cp --preserve=xattr A/data B2",
		"cp -a": "cp -a dir A/; setfattr -n user.lockfs.token -v 7 A/dir/data; setfattr -n user.lockfs.state -v held A/dir; cp -a A/dir B",
		"rsync": "rsync -aX dir A/; setfattr -n user.lockfs.token -v 7 A/dir/data; rsync -aX A/dir/ B/; rsync -aX A/dir/ B/",
		"tar":   "tar --xattrs -cf A/t.tar dir; mkdir B; tar --xattrs -xf A/t.tar -C B; cp -a dir A/; setfattr -n user.lockfs.pid -v 7 A/dir/data; tar --xattrs --xattrs-include='*' -C A -cf A/u.tar dir; tar --xattrs --xattrs-include='*' -xf A/u.tar -C B",
		"mv":    "cp -a dir/data A/d; setfattr -n user.lockfs.token -v 7 A/d; mv A/d B; mv B A/e; test $(getfattr --only-values -n user.mine A/e) = yes",
		"strip": "for a in state token x; do setfattr -n user.lockfs.$a -v 1 data && setfattr -x user.lockfs.$a data && setfattr -x user.lockfs.$a made.lock || exit 1; done",
	} {
		t.Run(name, func(t *testing.T) {
			sh.Must("rm -rf A B B2; mkdir A.$$; ln -s " + away + "/x A; rm -rf " + away + "/x; mkdir " + away + "/x; rmdir A.$$")
			sh.Must("(set -e; " + line + ") 2>&1")
			require.NotContains(t, sh.Must("[ ! -e B ] || getfattr -R -d -m - B"), "lockfs")
		})
	}
	require.Equal(t, "held\n", sh.Must("getfattr --only-values -n user.lockfs.state made.lock; echo"))
}
