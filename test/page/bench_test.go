package page

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// manyLocks takes ten thousand locks in ten directories, all of its own process, says so, and goes on: again and again it gives one of
// the first directory back, which are those that the page shows, takes it anew, and rests for the time of the changes of a busy cluster.
const manyLocks = `
import concurrent.futures, os, random, sys, time
pid = b"%d\n" % os.getpid()
def path(i): return "%s/team-%d/%04d.pid" % (sys.argv[1], i // 1000, i % 1000)
def take(i):
    fd = os.open(path(i), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, pid)
    os.close(fd)
def team(n):
    os.mkdir("%s/team-%d" % (sys.argv[1], n))
    for i in range(n * 1000, n * 1000 + 1000): take(i)
with concurrent.futures.ThreadPoolExecutor(10) as teams: list(teams.map(team, range(10)))
print("all taken", flush=True)
while True:
    i = random.randrange(50)
    os.unlink(path(i))
    take(i)
    time.sleep(0.05)
`

// watchFrames has a page note how far its frames are apart, in milliseconds.
const watchFrames = `var gaps = [];
requestAnimationFrame(function next(now) {
	requestAnimationFrame((then) => { gaps.push(then - now); next(then); });
});
"it does"`

// BenchmarkBrowserWithManyLocks looks at 10,000 locks of a cluster of three servers in a browser, while some of them come and go some
// twenty times a second, and takes and gives back one more, once for each iteration. It tells how long that takes to be seen, and how
// far frames are apart: 16.7 ms is none lost.
//
// The package comment has the command, and what came of it.
func BenchmarkBrowserWithManyLocks(b *testing.B) {
	c := testcluster.StartCluster(b, 3)
	leader := c.Leader()
	near, far := c.Others(leader)[0], c.Others(leader)[1]
	began := time.Now()
	taker := far.Host.Start("python3", "-c", manyLocks, c.Mount)
	require.NoError(b, taker.WaitOutput("all taken\n"))
	b.Logf("10,000 locks were taken in %v", time.Since(began).Round(time.Second))
	at, login := startUI(b, c, near.Host)
	page := openBrowser(b)
	page.do(chromedp.Navigate(login))
	page.await("the first page", rows+".length === 50")
	page.open("http://" + at + "/")

	var came, went, frames []float64
	page.ask(watchFrames)
	for b.Loop() {
		taken := time.Now()
		holder := far.Host.Start("sh", "-c", "set -C; echo $$ > "+c.Path("a.pid")+" && exec sleep 600")
		page.await("a lock that was taken", hasRow("a.pid"))
		came = append(came, time.Since(taken).Seconds()*1e3)
		given := time.Now()
		far.Host.MustRun(b, "rm", c.Path("a.pid"))
		page.await("that it goes", "!"+hasRow("a.pid"))
		went = append(went, time.Since(given).Seconds()*1e3)
		holder.Kill()
	}
	require.NoError(b, json.Unmarshal([]byte(page.ask("JSON.stringify(gaps)")), &frames))
	require.Greater(b, len(frames), len(came), "the page was drawn all the time")
	page.pictures("many-locks")
	page.open("http://" + at + "/members")
	page.pictures("busy-members")
	b.Logf("%d frames; a lock was seen after %.0f ms, and was gone after %.0f ms", len(frames), came, went)
	b.ReportMetric(stats.Quantile(frames, 0.5), "ms/frame-median")
	b.ReportMetric(stats.Quantile(frames, 0.99), "ms/frame-p99")
	b.ReportMetric(slices.Max(frames), "ms/frame-longest")
	b.ReportMetric(stats.Quantile(came, 0.5), "ms-seen-median")
	b.ReportMetric(slices.Max(came), "ms-seen-worst")
	b.ReportMetric(stats.Quantile(went, 0.5), "ms-gone-median")
	b.ReportMetric(slices.Max(went), "ms-gone-worst")
	b.ReportMetric(0, "ns/op")
}
