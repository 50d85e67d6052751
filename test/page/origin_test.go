package page

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestAWebPageCannotCallTheForrstEndpoint of the host on which its browser runs: neither with a request that needs no leave of the server, nor
// by a name of its own that leads to loopback. A program can.
func TestAWebPageCannotCallTheForrstEndpoint(t *testing.T) {
	c := testcluster.NewCluster(t, "--forrst-addr", "127.0.0.1:7423", "--forrst-upstream", "http://127.0.0.1:7500/rpc")
	n := c.Add(t)
	n.Start(t)
	upstream := n.Host.Start("python3", testcluster.ClientPath(t, "upstream.py"), "127.0.0.1", "7500")
	require.NoError(t, upstream.WaitOutput("ready\n"))
	url := "http://" + forward(t, n.Host, "127.0.0.1:7423") + "/forrst"
	call := func(id string) string {
		return fmt.Sprintf(`{"protocol":{"name":"forrst","version":"0.1.0"},"id":%q,"call":{"function":"work","version":"1.0.0","arguments":{}}}`, id)
	}

	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<title>foreign</title>")
	}))
	defer foreign.Close()
	b := openBrowser(t)
	b.do(chromedp.Navigate(foreign.URL))
	for _, kind := range []string{"text/plain", "application/json"} {
		b.ask(fmt.Sprintf(`window.answered = "", fetch(%q, {method: "POST", mode: "no-cors", body: %q, headers: {"Content-Type": %q}})
			.then(() => window.answered = "answer", () => window.answered = "error"), "sent"`, url, call("of a page"), kind))
		b.await("the request ended", `window.answered !== ""`)
	}

	post := func(id, host, kind string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(call(id)))
		require.NoError(t, err)
		request.Host = host
		request.Header.Set("Content-Type", kind)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	code, _ := post("by another name", "evil.example", "application/json")
	require.Equal(t, http.StatusForbidden, code)
	code, _ = post("of another type", "localhost", "text/plain")
	require.Equal(t, http.StatusUnsupportedMediaType, code)
	code, body := post("of a program", "localhost", "application/json")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, `"done": "of a program"`)
	require.Equal(t, 1, strings.Count(upstream.Stdout(), "enter"), upstream.Stdout())
}
