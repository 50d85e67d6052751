package page

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// takeMany takes 2,000 locks in 20 directories, all of its own process.
const takeMany = `
import os, sys, time
for d in range(20):
    os.mkdir("%s/queue-%d" % (sys.argv[1], d))
    for i in range(100):
        fd = os.open("%s/queue-%d/job-%d.lock" % (sys.argv[1], d, i), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, b"%d\n" % os.getpid())
        os.close(fd)
print("all taken", flush=True)
time.sleep(600)
`

// focused is the path of the focused row.
const focused = `document.activeElement.closest("tr")?.querySelector(".path a").textContent`

// TestManyLocksAreReadInPages of 50, in natural order and in groups, with the keys alone.
func TestManyLocksAreReadInPages(t *testing.T) {
	c := testcluster.StartCluster(t, 1)
	h := c.Nodes[0].Host
	at, login := startUI(t, c, h)
	taker := h.Start("python3", "-c", takeMany, c.Mount)
	require.NoError(t, taker.WaitOutput("all taken\n"))
	b := openBrowser(t)
	b.do(chromedp.Navigate(login))
	b.await("the first page", rows+`.length === 50 && document.querySelector(".count").innerText.includes("1–50 of 2,000 locks")`)
	b.await("natural order", rows+`.slice(0, 12).join() === Array.from({length: 12}, (_, i) => "queue-0/job-" + i + ".lock").join()`)
	require.Equal(t, "true", b.ask(`String(document.documentElement.scrollHeight < 3000)`), "a page of locks is short")
	b.pictures("many-locks")

	live := `document.getElementById("live")?.textContent === "live"`
	press := func(keys string) { b.do(chromedp.KeyEvent(keys)) }
	press(kb.ArrowDown)
	press(kb.ArrowDown)
	press(kb.ArrowDown)
	press(kb.ArrowUp)
	b.await("the second row", focused+` === "queue-0/job-1.lock"`)
	press(kb.Escape)
	b.await("no row", `document.activeElement === document.body`)
	press(kb.ArrowRight)
	b.await("the second page", live+" && "+rows+`[0] === "queue-0/job-50.lock"`)
	press(kb.ArrowRight)
	b.await("the third page", live+" && "+rows+`[0] === "queue-1/job-0.lock"`)
	press(kb.ArrowLeft)
	b.await("the second page again", live+" && "+rows+`[0] === "queue-0/job-50.lock"`)
	press("?")
	b.await("the list of keys", `document.getElementById("keys").open`)
	b.pictures("keys")
	press(kb.ArrowDown)
	press(kb.Escape)
	b.await("that it is closed", `!document.getElementById("keys").open`)
	require.Equal(t, "true", b.ask(`String(!document.activeElement.closest("tr"))`), "keys in the dialog do not move in the page")
	press(kb.ArrowDown + kb.Enter)
	b.await("a lock", live+` && location.pathname === "/lock/queue-0/job-50.lock"`)
	press(kb.Escape)
	b.await("the list again", live+` && location.pathname === "/"`)
	press("g")
	press("a")
	b.await("alarms", live+` && location.pathname === "/alarms"`)

	b.open("http://" + at + "/?group=directory")
	b.await("groups", `[...document.querySelectorAll("tr.group")].map((row) => row.innerText.trim().split(/\s+/).join(" ")).join() === "queue-0 100 locks"`)
	b.open("http://" + at + "/?group=directory&page=2")
	b.pictures("many-groups")
	b.ask(`scrollTo(0, document.body.scrollHeight), "scrolled"`)
	b.pictures("many-groups-end")
	b.open("http://" + at + "/?group=directory&page=3")
	b.click("tr.group a")
	b.await("one directory", live+` && document.querySelector(".count").innerText.includes("1–50 of 100 locks of 2,000")`)
	b.pictures("one-group")
	press("/")
	b.await("the filter", `document.activeElement.name === "q"`)
	press("job-99\r")
	b.await("a lock of the directory", live+fmt.Sprintf(` && %s.join() === "queue-1/job-99.lock"`, rows))
	b.requireFaultsSeen()
	b.requireOnlyFrom(at)
}
