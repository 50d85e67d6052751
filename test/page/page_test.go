package page

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

// startUI runs lockfs ui on a host, and answers where a browser on the test's own finds it, and the address that works once.
func startUI(t testing.TB, c *testcluster.Cluster, h *hosts.Host) (at, login string) {
	t.Helper()
	const listen = "127.0.0.1:7430"
	ui := h.Start(c.Program, "ui", "--print", "--listen", listen)
	require.NoError(t, ui.WaitOutput("End with Ctrl-C."))
	line, _, _ := strings.Cut(ui.Stdout(), "\n")
	u, err := url.Parse(line)
	require.NoError(t, err, ui.Stdout())
	_, port, err := net.SplitHostPort(forward(t, h, listen))
	require.NoError(t, err)
	at = net.JoinHostPort(u.Hostname(), port) // a browser takes that name for loopback
	return at, "http://" + at + u.Path
}

// TestAnOperatorLooksAtACluster in a browser, from a server that does not lead: the page shows locks as they come and go, goes on through
// a change of the leader, and releases a lock.
func TestAnOperatorLooksAtACluster(t *testing.T) {
	c := testcluster.StartCluster(t, 3)
	leader := c.Leader()
	near, far := c.Others(leader)[0], c.Others(leader)[1]
	at, login := startUI(t, c, near.Host)
	takeSomeLocks(t, c, far.Host, leader.Host)

	b := openBrowser(t)
	b.do(chromedp.Navigate("http://" + at + "/"))
	require.Contains(t, b.ask("document.body.innerText"), "Open the address printed by lockfs ui")
	b.do(chromedp.Navigate(login))
	b.await("the locks", `location.pathname === "/" && document.getElementById("live")?.textContent === "live"`)
	b.await("all locks", rows+".length === 6")
	b.await("who is waited for by many comes first", rows+`[0] === "busy.lock"`)

	requireSeenWithinASecond(t, b, c, far.Host)
	b.pictures("locks")
	b.ask(`document.dispatchEvent(new KeyboardEvent("keydown", {key: "/"})), document.activeElement.name`)
	b.do(chromedp.KeyEvent("deploy\r"))
	b.await("what fits the filter", rows+`.join() === "deploy/api.pid,deploy/web.pid" && document.getElementById("live").textContent === "live"`)

	b.open("http://" + at + "/")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.await("the first lock, by its key", `location.pathname === "/lock/busy.lock" && document.getElementById("live")?.textContent === "live"`)
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("e"))
	b.await("events, by their keys", `location.pathname === "/events"`)
	b.requireStillPicture("http://" + at + "/")

	for _, page := range []string{"events", "hosts", "members"} {
		b.open("http://" + at + "/" + page)
		b.await("rows", fmt.Sprintf(`document.querySelectorAll("[data-list=%s] > *").length > 2`, page))
		b.pictures(page)
	}
	b.open("http://" + at + "/events")
	far.Host.MustRun(t, "mkdir", c.Path("now.lock"))
	b.await("the event of a lock that is taken now, above the others", topEvent+` === "lock acquired now.lock"`)
	far.Host.MustRun(t, "rmdir", c.Path("now.lock"))
	b.await("that of its end", topEvent+` === "lock released now.lock"`)

	b.open("http://" + at + "/lock/busy.lock")
	b.await("who holds it and who waits", `document.querySelectorAll(".timeline .bar.waits").length === 4 && document.querySelectorAll(".timeline .bar.held").length === 1`)
	b.open("http://" + at + "/lock/deploy/web.pid")
	b.await("its history as a drawing", `document.querySelectorAll(".timeline .bar.held").length === 4 && document.querySelector(".timeline .mark.refused")`)
	b.pictures("lock")

	b.open("http://" + at + "/")
	leader.Kill()
	next := c.Leader()
	far.Host.Start("sh", "-c", "set -C; echo $$ > "+c.Path("after.pid")+" && exec sleep 600")
	b.await("a lock that was taken after the change of the leader", hasRow("after.pid"))
	b.await("the new leader", fmt.Sprintf(`document.getElementById("banner").innerText.includes("Leader %s")`, next.Name))

	b.open("http://" + at + "/lock/deploy/web.pid")
	b.click("a.danger")
	b.await("the question", `document.querySelector("h1").textContent === "Release this lock?"`)
	b.pictures("release")
	b.click("button.danger")
	b.await("that it is done", `document.body.innerText.includes("The lock was released")`)
	_, err := far.Host.Run("ls", c.Path("deploy/web.pid"))
	require.Error(t, err)
	b.requireOnlyFrom(at)
}

// requireSeenWithinASecond takes a lock on a host again and again, and gives it back, and requires of half of those times that the page
// of locks showed it in less than a second, the start of a program and this test's own looking included.
func requireSeenWithinASecond(t testing.TB, b *browser, c *testcluster.Cluster, far *hosts.Host) {
	t.Helper()
	var came, went []time.Duration
	for i := range 7 {
		name := fmt.Sprintf("new-%d.pid", i)
		began := time.Now()
		far.Start("sh", "-c", "set -C; echo $$ > "+c.Path(name)+" && exec sleep 600")
		b.await("a lock that was taken elsewhere", hasRow(name))
		came = append(came, time.Since(began).Round(time.Millisecond))
		began = time.Now()
		far.MustRun(t, "rm", "-f", c.Path(name))
		b.await("that it goes", "!"+hasRow(name))
		went = append(went, time.Since(began).Round(time.Millisecond))
	}
	t.Logf("locks are seen after %v, and are gone after %v", came, went)
	require.Less(t, stats.Quantile(came, 0.5), time.Second)
	require.Less(t, stats.Quantile(went, 0.5), time.Second)
}

// takeSomeLocks leaves 6 of them: two of processes, one with a history, one that is waited for, and some of no format.
func takeSomeLocks(t testing.TB, c *testcluster.Cluster, one, other *hosts.Host) {
	t.Helper()
	one.MustRun(t, "sh", "-c", "cd "+c.Mount+" && mkdir deploy backup && printf 'worker=w1\\n' > notes.txt && mkdir backup/nightly.lock backup/weekly.lock")
	for _, h := range []*hosts.Host{one, other, one} {
		h.MustRun(t, "sh", "-c", "set -C; echo $$ > "+c.Path("deploy/web.pid")+" && sleep 0.4 && rm -f "+c.Path("deploy/web.pid"))
	}
	for _, name := range []string{"deploy/web.pid", "deploy/api.pid"} {
		one.Start("sh", "-c", "set -C; echo $$ > "+c.Path(name)+" && exec sleep 600")
	}
	other.Start("flock", "-x", c.Path("busy.lock"), "sleep", "600")
	hosts.Eventually(t, "that it is held", func() (string, bool) {
		_, err := one.Run("flock", "-n", c.Path("busy.lock"), "true")
		return "", err != nil
	})
	hosts.Eventually(t, "that it says whose it is", func() (string, bool) {
		text, err := other.Run("cat", c.Path("deploy/web.pid"))
		return text, err == nil && text != ""
	})
	hosts.Eventually(t, "that another host is refused", func() (string, bool) {
		_, err := other.Run("rm", "-f", c.Path("deploy/web.pid"))
		return "", err != nil
	})
	for _, h := range []*hosts.Host{one, one, other, one} {
		h.Start("flock", "-x", c.Path("busy.lock"), "sleep", "600")
	}
	one.MustRun(t, "sh", "-c", "set -C; : > "+c.Path("empty.lock"))
}

// TestAMountsHostHasThePage of the whole cluster, which it is no server of: it shows what servers and it hold, and releases nothing.
func TestAMountsHostHasThePage(t *testing.T) {
	c := testcluster.StartSecureCluster(t, 3)
	g := c.AddGuest(t, "m")
	g.Start(t)
	at, login := startUI(t, c, g.Host)
	far := c.Others(c.Leader())[0].Host
	far.Start("sh", "-c", "set -C; echo $$ > "+c.Path("theirs.pid")+" && exec sleep 600")
	g.Host.Start("sh", "-c", "set -C; echo $$ > "+c.Path("ours.pid")+" && exec sleep 600")

	b := openBrowser(t)
	b.do(chromedp.Navigate(login))
	b.await("the locks of both", hasRow("theirs.pid")+" && "+hasRow("ours.pid"))
	b.await("the leader", fmt.Sprintf(`document.getElementById("banner").innerText.includes("Leader %s")`, c.Leader().Name))
	far.MustRun(t, "rm", "-f", c.Path("theirs.pid"))
	b.await("that one goes", "!"+hasRow("theirs.pid"))
	b.open("http://" + at + "/members")
	b.await("the servers", `document.querySelectorAll("[data-list=members] > *").length >= 3`)
	b.open("http://" + at + "/lock/ours.pid")
	b.await("its host", `document.body.innerText.includes("on m")`)
	require.Equal(t, "0", b.ask(`String(document.querySelectorAll("a.danger").length)`), "only a server releases")
	b.requireOnlyFrom(at)
}
