package page

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// browser is a Chromium on the test's own host, with one page.
type browser struct {
	t    testing.TB
	ctx  context.Context
	mu   sync.Mutex
	seen []string // addresses that it asked for, but for the files of the page itself
	bad  []string // what it complained of: errors of the script, and what the content security policy kept from being done
}

// openBrowser starts one that can reach nothing but this host. It ends with the test.
func openBrowser(t testing.TB) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.Flag("host-resolver-rules", "MAP *.localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Flag("disable-dev-shm-usage", true))
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	b := &browser{t: t}
	b.ctx, cancel = chromedp.NewContext(allocated, chromedp.WithListener(b.note))
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(b.ctx, command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{})))
	return b
}

// command is one of the browser's protocol.
func command[Params, Reply any](c cdp.Command[Params, Reply], params Params) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.seen = append(b.seen, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.bad = append(b.bad, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || e.Entry.Source == log.EntrySourceViolation || strings.Contains(e.Entry.Text, "Content Security Policy") {
			b.bad = append(b.bad, e.Entry.Text)
		}
	}
}

const browserTimeout = 30 * time.Second

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// ask answers the text that an expression is in the page.
func (b *browser) ask(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	require.NoError(b.t, err)
	return value
}

// await waits until an expression is true in the page.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	hosts.Eventually(b.t, what, func() (string, bool) {
		ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
		defer cancel()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.textContent"))
		return fmt.Sprintf("%v: %s", err, text), ok
	})
}

// click is on the first element of a selector.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// rows are the paths of the locks that the page has.
const rows = `[...document.querySelectorAll("[data-list=locks] .path a")].map(a => a.textContent)`

func hasRow(path string) string { return fmt.Sprintf("%s.includes(%q)", rows, path) }

// open opens an address, and waits until the page is live.
func (b *browser) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
	b.await("a live page", `document.getElementById("live")?.textContent === "live"`)
}

// topEvent is what the newest of the events is, and of which path.
const topEvent = `["Event", "Path"].map(label => document.querySelector("[data-list=events] > * > [data-label=" + label + "]")?.innerText).join(" ")`

// pictures requires that the page is accessible, and keeps it as it looks in light, in dark, and on a narrow screen, as
// artefacts of the test (CONTRIBUTING.md says how they are kept).
func (b *browser) pictures(name string) {
	b.t.Helper()
	b.requireAccessible(name)
	if flag.Lookup("test.artifacts").Value.String() != "true" {
		return
	}
	for suffix, l := range map[string]look{"light": {1280, false}, "dark": {1280, true}, "narrow": {390, false}, "narrow-dark": {390, true}} {
		b.as(l, func() {
			ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
			defer cancel()
			png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
			require.NoError(b.t, err)
			require.NoError(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+"-"+suffix+".png"), png, 0o644))
		})
	}
}

// requireStillPicture requires of the page of locks that it has all rows and finds some where no script is run.
func (b *browser) requireStillPicture(address string) {
	b.t.Helper()
	b.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.do(chromedp.Navigate(address))
	b.await("all locks", rows+".length === 6")
	require.NotEqual(b.t, "live", b.ask(`document.getElementById("live").textContent`))
	b.do(chromedp.Navigate(address + "?q=deploy"))
	b.await("what fits the filter", rows+`.join() === "deploy/api.pid,deploy/web.pid"`)
	b.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{}))
}

// requireOnlyFrom requires that nothing was asked of any other host, and that the browser had nothing to complain of.
func (b *browser) requireOnlyFrom(host string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b.t, b.seen)
	for _, address := range b.seen {
		u, err := url.Parse(address)
		require.NoError(b.t, err)
		require.Equal(b.t, host, u.Host, "%s was asked for", address)
	}
	require.Empty(b.t, b.bad)
}

// forward answers an address on the test's own host behind which is one of another host.
func forward(t testing.TB, h *hosts.Host, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				far, err := h.Dial(address)
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(far, conn)
					_ = far.Close()
				}()
				_, _ = io.Copy(conn, far)
			}()
		}
	}()
	return listener.Addr().String()
}
