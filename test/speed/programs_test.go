package speed

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// BenchmarkPrograms measures programs that use many small files, on four hosts at once, on a mount of three servers and a guest and on the local disk
// below it, in turns:
//
//	go test ./test/speed -run '^$' -bench Programs -benchtime 5x -timeout 1h
//
// push is ten pushes of each host to a repository that all share, worktree ten commits of each in a working tree of its own there, while one of them
// has git collect garbage, borg an archive of 200 files of each in one repository, where one waits for the other. times-local is the ratio of the medians.
func BenchmarkPrograms(b *testing.B) {
	c := testcluster.StartCluster(b, 3)
	g := c.AddGuest(b, "m")
	g.Start(b)
	on := []*hosts.Host{c.Nodes[0].Host, c.Nodes[1].Host, c.Nodes[2].Host, g.Host}
	for _, scene := range scenes {
		b.Run(scene.name, func(b *testing.B) {
			var shared, local []float64
			for range b.N {
				shared = append(shared, scene.run(b, on, b.TempDir(), c.Path(scene.name)))
				local = append(local, scene.run(b, on, b.TempDir(), filepath.Join(b.TempDir(), scene.name)))
			}
			b.ReportMetric(stats.Quantile(shared, 0.5), "s")
			b.ReportMetric(stats.Quantile(local, 0.5), "s-local")
			b.ReportMetric(stats.Quantile(shared, 0.5)/stats.Quantile(local, 0.5), "times-local")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// scene is what hosts do at once in a directory D. W is a directory of each on its local disk, N its number.
type scene struct {
	name    string
	prepare string // by one, for all
	own     string // by each, before
	work    string // by each, measured
}

var scenes = []scene{
	{
		"push", `git init -q --bare "$D/repo.git"`,
		`git init -q -b "b$N" "$W/repo"; git -C "$W/repo" remote add origin "$D/repo.git"`,
		`cd "$W/repo"; for i in 1 2 3 4 5 6 7 8 9 10; do echo "$i" > "f$i"; git add .; git commit -q -m "$i"; git push -q origin "b$N"; done`,
	},
	{
		"worktree", `git init -q -b main "$D/repo"; cd "$D/repo"; git config gc.auto 0; for i in 1 2 3 4 5 6 7 8 9 10; do echo "$i" > "f$i"; git add .; git commit -q -m "$i"; done
			for n in 0 1 2 3; do git worktree add -q "../w$n" -b "b$n"; done`,
		``,
		`cd "$D/w$N"; for i in 1 2 3 4 5 6 7 8 9 10; do echo "$N $i" > "own$i"; git add .; git commit -q -m "$i"; if [ "$N$i" = 05 ]; then git gc -q; fi; done`,
	},
	{ // borg looks whether it is its turn every tenth of --lock-wait: each 30 s if it were willing to wait for 300
		"borg", `borg init -e none "$D/borg"`,
		`mkdir "$W/files"; for i in $(seq 200); do echo "$N $i" > "$W/files/$i"; done`,
		`cd "$W"; until borg create --lock-wait 2 "$D/borg::$N" files; do [ $((tries += 1)) -lt 100 ]; done`,
	},
}

const settings = `set -e; export HOME="$W" LC_ALL=C GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
	export BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes BORG_RELOCATED_REPO_ACCESS_IS_OK=yes
`

// run answers how many seconds it takes until all are done. The directory is made, and removed.
func (s scene) run(b *testing.B, on []*hosts.Host, scratch, dir string) float64 {
	b.Helper()
	on[0].MustRun(b, "mkdir", dir)
	defer on[0].MustRun(b, "rm", "-rf", dir)
	do := func(host int, script string) error {
		work := filepath.Join(scratch, on[host].Name())
		p := on[host].Start("env", "D="+dir, "W="+work, "N="+string(rune('0'+host)), "bash", "-c", settings+`mkdir -p "$W"; `+script)
		<-p.Ended() // however long it takes
		if err := p.Wait(); err != nil {
			return fmt.Errorf("%w; it wrote:\n%s", err, p.Log())
		}
		return nil
	}
	require.NoError(b, do(0, s.prepare))
	for n := range on {
		require.NoError(b, do(n, s.own))
	}
	began := time.Now()
	errs := make([]error, len(on))
	var all sync.WaitGroup
	for n := range on {
		all.Go(func() { errs[n] = do(n, s.work) })
	}
	all.Wait()
	took := time.Since(began).Seconds()
	for _, err := range errs {
		require.NoError(b, err)
	}
	return took
}
