package operation

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// users work in a directory that everybody may write to, as a local program does. be makes somebody of the process; fill makes
// files until it may no more, small adds something in all other ways, renew adds nothing.
const users = `
def be(uid, name):
    global me
    me = name
    os.setuid(uid)

def write(name, size, flags=os.O_CREAT | os.O_EXCL):
    with open(os.open(name, flags | os.O_WRONLY), 'wb', buffering=0) as f:
        f.write(b'x' * size)
        os.fsync(f.fileno())

def fill():
    for size in 250000, 20000, 0:
        try:
            for number in range(1000):
                write('%s-%d-%d' % (me, size, number), size)
        except OSError as error:
            why = NAMES[error.errno]
    try:
        for number in range(10): # a link needs less than a file
            os.link(me + '.lock', '%s-link-%d' % (me, number))
    except OSError as error:
        why = NAMES[error.errno]
    return why

def small():
    makers = {
        'create': lambda name: write(name, 0),
        'open': lambda name: write(name, 0, os.O_CREAT),
        'mkdir': os.mkdir,
        'symlink': lambda name: os.symlink('target', name),
        'link': lambda name: os.link(me + '.lock', name),
        'mkfifo': os.mkfifo,
        'setxattr': lambda name: os.setxattr(me + '.lock', 'user.' + name, b'v' * 4000),
        'write': lambda name: write(me + '.lock', 9000, os.O_TRUNC),
    }
    errors = set()
    for what, make in makers.items():
        try:
            make(me + '.' + what)
            errors.add('none for ' + what)
        except OSError as error:
            errors.add(NAMES[error.errno])
    return ' '.join(sorted(errors))

def renew():
    for size in 100, 0, 300, 500:
        write(me + '.lock', size, os.O_TRUNC)
    with open(me + '.lock') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        fcntl.flock(f, fcntl.LOCK_UN)
    os.rename(me + '.lock', me + '.renamed')
    os.rename(me + '.renamed', me + '.lock')
`

// TestUsersHaveAShare has one user, and then another, fill what they may. Others go on, what adds nothing is never refused, and
// nothing of it depends on whether the server has been started anew.
func TestUsersHaveAShare(t *testing.T) {
	t.Parallel()
	c, _ := testcluster.StartInMemory(t, "--max-bytes", "3M", "--max-bytes-per-user", "2M")
	n := c.Nodes[0]
	user := func(uid int, name string) testcluster.Actor {
		a := testcluster.StartActor(t, n.Host, c.Mount)
		a.Must(fmt.Sprintf("exec(%q); be(%d, %q)", users, uid, name))
		return a
	}
	const available = "print(os.statvfs('.').f_bavail)"
	requireFull := func(anne testcluster.Actor, why string) {
		t.Helper()
		anne.Require("say(write, me + '.more', 1)", why)
		anne.Require("say(small)", why)
		anne.Require("say(renew)", "ok")
	}
	anne, bert, root := user(1001, "anne"), user(1002, "bert"), user(0, "root")
	for _, a := range []testcluster.Actor{anne, bert, root} {
		a.Require("say(write, me + '.lock', 10)", "ok")
	}
	anne.Require("say(fill)", "EDQUOT")
	requireFull(anne, "EDQUOT")
	anne.Require(available, "0")

	bert.Require("say(renew)", "ok")
	bert.Require("say(write, 'other.lock', 1000)", "ok")
	bert.Require("say(fill)", "ENOSPC")
	requireFull(bert, "ENOSPC")
	bert.Require(available, "0")
	root.Require("say(write, 'roots.lock', 1000)", "ok")
	root.Require("say(renew)", "ok")

	for _, a := range []testcluster.Actor{anne, bert, root} {
		a.Must("os.chdir('/')")
	}
	n.Stop(t)
	n.Start(t)
	anne, bert, root = user(1001, "anne"), user(1002, "bert"), user(0, "root")
	requireFull(anne, "EDQUOT")
	requireFull(bert, "ENOSPC")
	root.Require("say(renew)", "ok")
	status, err := n.Lockfs("status")
	require.NoError(t, err)
	require.Contains(t, status, " of 3.0 MiB, ")

	anne.Require("say(os.unlink, 'anne-250000-0')", "ok")
	anne.Require("say(write, 'anne.more', 1000)", "ok")
	bert.Require("say(write, 'bert.more', 1000)", "ok")
}
