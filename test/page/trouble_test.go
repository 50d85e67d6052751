package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// takeEachFormat takes a lock of each format on a host: two are live, one has expired, one is invalid.
func takeEachFormat(t testing.TB, c *testcluster.Cluster, h *hosts.Host) {
	t.Helper()
	h.MustRun(t, "sh", "-c", "cd "+c.Mount+` && mkdir reports deploy && set -C
		printf '{"task_id":"t1","worker":"worker-7","acquired_at":"%s","expires_at":"%s"}' "$(date -u +%FT%TZ)" "$(date -u -d '+1 hour' +%FT%TZ)" > reports/task.lock
		printf 'pid=4711\ntimestamp=1703520000\n' > reports/nightly.lock
		printf 'pid=4711\ntimestamp=yesterday\n' > reports/odd.lock
		mkdir reports/weekly.lock`)
	h.Start("sh", "-c", "set -C; echo $$ > "+c.Path("deploy/web.pid")+" && exec sleep 600")
	h.Start("sh", "-c", "set -C; "+testcluster.BeadsContent+" > "+c.Path("deploy/api.lock")+" && exec sleep 600")
	hosts.Eventually(t, "the lock of the process", func() (string, bool) {
		text, err := h.Run("cat", c.Path("deploy/web.pid"), c.Path("deploy/api.lock"))
		return text, err == nil && strings.Contains(text, "hostname") && strings.Count(text, "\n") == 2
	})
}

// TestThePageShowsTrouble first and in plain view, and says it to screen readers: a silent host with its locks, expired and invalid
// locks, and an alarm. Each pill leads to its list.
func TestThePageShowsTrouble(t *testing.T) {
	c := testcluster.StartCluster(t, 3)
	leader := c.Leader()
	near, far := c.Others(leader)[0], c.Others(leader)[1]
	at, login := startUI(t, c, near.Host)
	b := openBrowser(t)
	b.do(chromedp.Navigate(login))
	b.await("that there are no locks yet", `document.querySelector(".none").innerText.includes("No locks yet")`)
	b.pictures("no-locks")
	takeEachFormat(t, c, far.Host)
	b.await("its locks", rows+".length === 6")
	require.Equal(t, "", b.ask(`[...document.querySelectorAll("[data-list=locks] tr")].filter((row) => !row.querySelector("[data-label=Holder]").innerText).map((row) => row.innerText).join()`),
		"each has a holder")
	b.pictures("formats")

	far.Kill()
	b.await("its host in an alert", fmt.Sprintf(`document.querySelector("[role=alert]").textContent.includes("silent hosts: %s")`, far.Host.Name()))
	b.await("its locks in trouble", `document.querySelector("[data-block=lock-trouble]").textContent === "Locks in trouble: 2 unreachable, 1 stale."`)
	b.await("unreachable locks first, then the expired and the invalid one", `[...document.querySelectorAll("[data-list=locks] tr")].slice(0, 4).map((row) =>
		row.querySelector(".path a").textContent).join() === "deploy/api.lock,deploy/web.pid,reports/nightly.lock,reports/odd.lock"`)
	require.Equal(t, "4", b.ask(`String(document.querySelectorAll("[data-list=locks] .path > small").length)`), "only trouble has a second line")
	require.Contains(t, b.ask(`document.querySelector("[data-list=locks] .past").textContent`), " ago")
	b.pictures("trouble")

	b.open("http://" + at + "/?q=no-such-lock")
	b.await("that nothing matches", `document.querySelector(".none").innerText.includes("No lock matches this filter")`)
	b.pictures("nothing-matches")
	b.open("http://" + at + "/lock/deploy/web.pid")
	b.await("the end of the bar as unreachable", `document.querySelector(".timeline .bar.unreachable") && !document.querySelector(".timeline .bar.held[x='0']")`)
	b.pictures("unreachable-lock")

	near.Stop(t)
	near.Flags = append(near.Flags, "--min-free", "900T")
	near.Start(t)
	b.open("http://" + at + "/")
	b.await("the alarm in an alert", `document.querySelector("[role=alert]").textContent.includes("alarms: no space")`)
	for pill, path := range map[string]string{"Silent hosts": "/hosts", "Quorum": "/members", "Alarms": "/alarms"} {
		b.open("http://" + at + "/events")
		b.ask(fmt.Sprintf(`[...document.querySelectorAll("a.pill")].find((a) => a.innerText.startsWith(%q)).click(), "clicked"`, pill))
		b.await("the list behind a pill", fmt.Sprintf(`location.pathname === %q && document.getElementById("live")?.textContent === "live"`, path))
		b.pictures("trouble-" + path[1:])
	}
	b.open("http://" + at + "/events?kind=host_unreachable")
	b.await("the one event", fmt.Sprintf(`document.querySelectorAll("[data-list=events] tr").length === 1 && document.querySelector("[data-list=events]").innerText.includes(%q)`, far.Host.Name()))
	b.open("http://" + at + "/events?path=reports&host=" + far.Host.Name())
	b.await("events of a directory", `document.querySelectorAll("[data-list=events] .path a").length > 3 &&
		[...document.querySelectorAll("[data-list=events] .path a")].every((a) => a.textContent.startsWith("reports/"))`)
	b.pictures("trouble-events")
	b.requireOnlyFrom(at)
}
