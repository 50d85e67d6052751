package primitives

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A scene is what programs on four hosts do, A, B, C and D. A line names one, or some that do it in turn, or * for all at
// the same time; then comes the command, which has to succeed, and after => what it has to print. Each host is one shell,
// with the functions of clients/programs.sh.
type scene struct{ name, lines string }

// scenes do on a mount what they do on a local disk. No program knows of lockfs.
var scenes = []scene{
	{"svn", `
		A svnadmin create repo
		ABCD svn_commit $me-1
		ABCD svn_commit $me-2
		ABCD svn_commit $me-3
		* svn_commit $me-4
		B svnlook youngest repo => 16
		C svnadmin verify -q repo
		D svn list file://$repo | wc -l => 16`},
	{"hg", `
		A hg init repo
		ABCD hg_commit $me-1
		* hg_commit $me-2
		B hg -R repo log -T x => xxxxxxxx
		C hg -R repo verify -q
		D hg -R repo status`},
	{"git", `
		A git init -q -b main repo
		ABCD git_commit $me-1
		B cd repo && git gc -q; cd ..
		ABCD git_commit $me-2
		C cd repo && git gc -q --prune=now; cd ..
		A mkdir -p repo/build/deep; echo 1 > repo/build/o; echo 1 > repo/build/deep/o
		B cat repo/build/o repo/build/deep/o => 1~1
		C rm -r repo/build; mkdir -p repo/build/deep; echo 2 > repo/build/o; echo 2 > repo/build/deep/o
		B git -C repo clean -fdxq
		D git -C repo status --porcelain =>
		D git -C repo worktree add -q ../$me -b $me
		A git -C repo worktree add -q ../$me -b $me
		D git_commit $me-3 d
		A git_commit $me-3 a
		B git -C repo merge -q --no-edit a d
		C git -C repo worktree remove a
		D git -C repo worktree remove --force d
		A git -C repo worktree prune; git -C repo worktree list | wc -l => 1
		B git -C repo fsck --strict --no-progress
		C git -C repo log --no-merges --oneline | wc -l => 10
		D ls repo | wc -l => 10`},
	{"make", `
		A printf 'all: p\np: f.o g.o\n\tgcc -o $@ f.o g.o\n%%.o: %%.c\n\tgcc -c -o $@ $<\nclean:\n\trm -f *.o p\n' > Makefile
		A echo 'int f(void) { return 1; }' > f.c; echo 'int f(void); int main(void) { return f() - 1; }' > g.c
		A make -s && ./p
		B cat f.o g.o p > /dev/null; touch f.c g.c; make -s && ./p
		C cat f.o g.o p > /dev/null; touch f.c g.c; make -s -j2 && ./p
		A cat f.o > /dev/null; touch f.c; make -s && ./p
		D make -s clean; make -s && ./p
		A make -s clean; make -s && ./p
		B make -s clean; ls => Makefile~f.c~g.c`},
	{"rm -rf", `
		A tree t 1
		B look t
		C replaced t 2
		B rm -rf t && ! [ -e t ]
		A tree t 3; rm -r t
		B tree t 4
		A rm -r t && ! [ -e t ]
		B tree t 5; look t
		C rm t/f; echo 6 > t/f; rm t/link; ln -s 6 t/link
		B find t -delete && ! [ -e t ]`},
	{"tar", `
		A tree t 1; tar cf $W/../tar t
		B tar xf $W/../tar; look t
		C replaced t 2
		B tar xf $W/../tar; cat t/f t/sub/g => 1~1
		A look t
		B rm t/f t/sub/deep/h; echo 3 > t/f; echo 3 > t/sub/deep/h
		A tar xf $W/../tar; cat t/f t/sub/g => 1~1
		D tar xf $W/../tar --unlink-first --recursive-unlink; readlink t/link => 1`},
	{"cp -a, install", `
		A tree $W/src 1; cp -a $W/src t; look t
		B replaced t 2
		A cp -af $W/src/. t; cat t/f t/sub/deep/h; readlink t/link => 1~1~1
		B look t; echo 3 > three
		C rm t/f; echo 4 > t/f; rm t/sub/g; echo 4 > t/sub/g
		B install -m 600 three t/f; cp --remove-destination three t/sub/g; cat t/f t/sub/g => 3~3
		A cat t/f three > /dev/null
		C rm three; echo 5 > three; mv -f three t/f; echo 6 > three
		A install -b three t/f; cat t/f t/f~ => 6~5
		D cp -a t u; rm -rf t; mv u t; cat t/f => 6`},
	{"rsync", `
		A tree $W/src 1; rsync -ac --delete $W/src/ t
		B look t
		C replaced t 2; echo more > t/more
		B tree $W/src 3; cat t/more; rsync -ac --delete $W/src/ t; cat t/f t/sub/g => more~3~3
		A look t
		B rm -r t/sub; tree t 4; tree t/other 4
		A rsync -ac --delete --inplace $W/src/ t; cat t/f; ls t => 1~f~link~sub
		D look t
		A rsync -ac --delete --delay-updates $W/src/ t
		D rm -rf t && ! [ -e t ]`},
	{"ssh-keygen -R", `
		A ssh-keygen -q -t ed25519 -N '' -f $W/key && for h in one two three four; do echo $h $(cut -d' ' -f1,2 $W/key.pub); done > known
		B cat known > /dev/null
		A ssh-keygen -q -R one -f known 2>&1 => known updated.~Original contents retained as known.old
		B cat known.old > /dev/null; ssh-keygen -q -R two -f known > /dev/null 2>&1
		C ssh-keygen -q -R three -f known > /dev/null 2>&1
		B ssh-keygen -q -R four -f known > /dev/null 2>&1; wc -l < known => 0`},
	{"logrotate", `
		A echo A >> log
		* printf '%s {\n rotate 3\n size 1\n create 644 root root\n missingok\n}\n' $PWD/log > $W/conf; chmod 644 $W/conf
		A logrotate -f -s $W/state $W/conf
		B cat log log.1 => A
		B echo B >> log; logrotate -f -s $W/state $W/conf
		C cat log log.1 log.2 => B~A
		A echo C >> log; logrotate -f -s $W/state $W/conf
		C echo D >> log; logrotate -f -s $W/state $W/conf
		B cat log.1 log.2 log.3 => D~C~B
		D echo E > log; cat log*; mv log.1 log.2; mv log log.1; : > log => E~D~C~B
		A cat log* > /dev/null; mv log.2 log.3; mv log.1 log.2; mv log log.1; cat log* => E~D`},
	{"sed -i", `
		A printf 'x=1\ny=1\n' > conf
		ABCD cat conf > /dev/null; sed -i 's/^x=.*/x='$me/ conf
		A cat conf => x=d~y=1
		ABCD sed -i.bak 's/^y=.*/y='$me/ conf; cat conf.bak > /dev/null
		B cat conf conf.bak => x=d~y=d~x=d~y=c
		* for i in 1 2 3 4 5; do sed -i s/$me/$me/ conf || exit; done
		C cat conf => x=d~y=d`},
	{"counters", `
		A echo 5 > t; mv t n
		B echo 6 > u; mv u n
		C n=$(cat n); echo $((n + 1)) > n
		D n=$(cat n); echo $((n + 1)) > n.new; mv n.new n
		A n=$(cat n); rm n; echo $((n + 1)) > n; cat n => 9
		BCD n=$(cat n); rm -f n; echo $((n + 1)) > n
		A cat n => 12
		* times 5 count_in n
		A cat n => 32
		* times 5 count_by_mv n
		B cat n => 52
		* (flock 9; n=$(cat o 2> /dev/null); rm -f o; (set -C; echo $((n + 1)) > o)) 9> o.lock
		C cat o => 4
		* (flock 9; n=$(cat p 2> /dev/null); echo $((n + 1)) > p.new; ln -f p.new p; rm p.new) 9> p.lock
		C cat p => 4`},
	{"links", `
		A ln -s one s; readlink s => one
		B rm s; ln -s two s
		A rm s; ln -s three s; readlink s => three
		B ln -sfn four s; readlink s => four
		C readlink s; ln -sfn five s.new; mv -T s.new s => four
		A echo 1 > f; ln f g
		B cat g; rm f; echo 2 > f; ln -f f g => 1
		A rm f g
		B echo 3 > f
		A rm f; echo 4 > f
		B rm f`},
	{"zc.lockfile", `
		A daemon zc zc_lock lock
		B zc_said=$(daemon zc zc_lock lock 2>&1); echo $zc_said => taken
		A ended zc
		B daemon zc zc_lock lock
		C zc_said=$(daemon zc zc_lock lock 2>&1); echo $zc_said => taken
		B ended zc
		D daemon zc zc_lock lock; ended zc
		A rm lock`},
	{"a run lock", `
		A daemon run run_lock lock
		B daemon run run_lock lock; echo $? => 75
		A ended run
		B daemon run run_lock lock
		CD daemon run run_lock lock; echo $? => 75
		B ended run
		D daemon run run_lock lock; ended run
		C flock -n lock rm lock`},
	{"start-stop-daemon", `
		ABCD start_daemon $PWD/$me.pid
		ABCD stop_daemon $PWD/$me.pid
		ABCD start_daemon $PWD/pid && stop_daemon $PWD/pid
		ABCD start_daemon $PWD/pid && stop_daemon $PWD/pid
		A ls =>`},
	{"daemonize", `
		A daemonize -p $PWD/pid -l $PWD/lock /bin/sleep 1000
		B daemonize -p $PWD/pid -l $PWD/lock /bin/sleep 1000 2> /dev/null || echo taken => taken
		A stop_pid pid
		B daemonize -p $PWD/pid -l $PWD/lock /bin/sleep 1000
		CD daemonize -p $PWD/pid -l $PWD/lock /bin/sleep 1000 2> /dev/null || echo taken => taken
		B stop_pid pid
		D daemonize -p $PWD/pid -l $PWD/lock /bin/sleep 1000
		D stop_pid pid
		A rm lock; ls =>`},
}

// TestPrograms has real programs, as they come, do on three mounts, from four hosts with names of their own, what they
// have just done on a local disk.
func TestPrograms(t *testing.T) {
	t.Parallel()
	c, host := testcluster.StartInMemory(t)
	on := []*hosts.Host{host}
	for _, name := range []string{"birch", "cedar"} {
		g := c.AddGuest(t, name)
		g.Start(t)
		on = append(on, g.Host)
	}
	on = append(on, on[2]) // by another name
	disk := filepath.Join(c.Net.Dir(), "disk")
	require.NoError(t, os.Mkdir(disk, 0o755))
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := strings.ReplaceAll(s.name, " ", "-")
			require.NoError(t, os.Mkdir(filepath.Join(disk, dir), 0o755))
			require.True(t, act(t, c, s, filepath.Join(disk, dir), filepath.Join(c.Net.Dir(), dir+".on-disk"), on), "on the local disk")
			host.MustRun(t, "mkdir", c.Path(dir))
			act(t, c, s, c.Path(dir), filepath.Join(c.Net.Dir(), dir+".on-mount"), on)
		})
	}
}

// act does a scene in a directory, with one on the local disk for each host. It tells whether all went well.
func act(t *testing.T, c *testcluster.Cluster, s scene, dir, local string, on []*hosts.Host) bool {
	t.Helper()
	functions := testcluster.ClientPath(t, "programs.sh")
	players := make(map[string]*testcluster.Shell)
	for i, h := range on {
		name := string(rune('a' + i))
		own := filepath.Join(local, name)
		require.NoError(t, os.MkdirAll(own, 0o755))
		start := fmt.Sprintf("hostname %s\n%s", name, testcluster.BashSteps)
		p := testcluster.StartSteps(t, h, dir, "unshare", "--uts", "bash", "-c", start, "bash")
		p.Must(fmt.Sprintf("me=%s; W=%s; . %s", name, own, functions))
		players[strings.ToUpper(name)] = p
	}
	for line := range strings.Lines(s.lines) {
		who, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if who == "" {
			continue
		}
		step, want, prints := strings.Cut(rest, " =>")
		var ends []func() (string, error)
		for _, name := range strings.Split(strings.Replace(who, "*", "ABCD", 1), "") {
			end := players[name].Begin(strings.TrimSpace(step))
			if who == "*" {
				ends = append(ends, end)
				continue
			}
			said, err := end()
			if !saidAsWanted(t, said, err, strings.TrimSpace(want), prints, line) {
				return false
			}
		}
		for _, end := range ends {
			said, err := end()
			if !saidAsWanted(t, said, err, strings.TrimSpace(want), prints, line) {
				return false
			}
		}
	}
	return true
}

func saidAsWanted(t *testing.T, said string, err error, want string, prints bool, line string) bool {
	t.Helper()
	if !assert.NoError(t, err, strings.TrimSpace(line)) {
		return false
	}
	return !prints || assert.Equal(t, strings.ReplaceAll(want, "~", "\n"), strings.TrimSpace(said), strings.TrimSpace(line))
}
