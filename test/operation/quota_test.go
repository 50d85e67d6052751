package operation

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestQuotas of a directory and of a user, on a mount: EDQUOT, df, renames, and that they outlive the server.
func TestQuotas(t *testing.T) {
	t.Parallel()
	c, _ := testcluster.StartInMemory(t)
	n := c.Nodes[0]
	lockfs := func(args ...string) string {
		t.Helper()
		out, err := n.Lockfs(args...)
		require.NoError(t, err)
		return out
	}
	user := func(uid string) testcluster.Actor {
		a := testcluster.StartActor(t, n.Host, c.Mount)
		a.Must("exec(" + strconv.Quote(users) + "); be(" + uid + ", 'user" + uid + "')")
		return a
	}
	n.Host.MustRun(t, "mkdir", "-m", "1777", c.Path("ci"))
	n.Host.MustRun(t, "mkdir", "-m", "1777", c.Path("ci", "deep"))
	lockfs("quota", "set", "/ci", "--inodes", "4", "--bytes", "64K")
	lockfs("quota", "set", "--uid", "1001", "--inodes", "6")
	anne, root := user("1001"), user("0")
	anne.Require("say(write, 'ci/a', 20000)", "ok")
	anne.Require("say(write, 'ci/deep/b', 20000)", "ok")
	root.Require("say(write, 'ci/c', 30000)", "EDQUOT")
	root.Require("say(os.unlink, 'ci/c')", "ok")
	root.Require("say(write, 'ci/c', 0)", "ok")
	root.Require("say(write, 'ci/d', 0)", "EDQUOT")
	root.Require("say(os.link, 'ci/a', 'ci/deep/d')", "EDQUOT")
	root.Require("say(os.rename, 'ci/a', 'ci/deep/a')", "ok")
	root.Require("s = os.statvfs('ci/deep'); print(s.f_files, s.f_ffree, s.f_blocks * s.f_frsize)", "4 0 65536")
	root.Require("print(os.statvfs('.').f_ffree > 1000)", "True")

	root.Require("say(write, 'outside', 0)", "ok")
	root.Require("say(os.rename, 'outside', 'ci/outside')", "EDQUOT")
	root.Require("say(os.rename, 'outside', 'ci/c')", "ok")
	root.Require("say(os.rename, 'ci', 'moved')", "ok")
	require.Contains(t, lockfs("quota", "list"), "/moved")

	for _, name := range []string{"1", "2", "3", "4"} {
		anne.Require("say(write, "+strconv.Quote(name)+", 0)", "ok")
	}
	anne.Require("say(write, '5', 0)", "EDQUOT")
	for _, a := range []testcluster.Actor{anne, root} {
		a.Must("os.chdir('/')")
	}
	n.Stop(t)
	n.Start(t)
	anne, root = user("1001"), user("0")
	anne.Require("say(write, '5', 0)", "EDQUOT")
	root.Require("say(write, 'moved/d', 0)", "EDQUOT")
	lockfs("quota", "remove", "/moved")
	lockfs("quota", "remove", "--uid", "1001")
	anne.Require("say(write, '5', 0)", "ok")
	root.Require("say(write, 'moved/d', 0)", "ok")
	_, err := n.Lockfs("quota", "remove", "/moved")
	require.ErrorContains(t, err, "there is no such quota")
}
