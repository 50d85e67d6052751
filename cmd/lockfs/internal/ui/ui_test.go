package ui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serveDaemon is a daemon that has its page at an address, or on its socket only.
func serveDaemon(t testing.TB, address string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "page.sock")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/login", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, `{"url":%q,"user":7}`, address) })
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "the page at %s for %s, cookies %q", r.URL.Path, r.Host, r.Header.Get("Cookie"))
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket
}

func TestThePageOfTheDaemonIsShownWhereItIsNear(t *testing.T) {
	var out, notes bytes.Buffer
	p := &plan{print: true, socket: serveDaemon(t, "http://127.0.0.1:7422/login/x")}
	require.NoError(t, p.run(t.Context(), &out, &notes))
	require.Equal(t, "http://127.0.0.1:7422/login/x\n", out.String(), "nothing else, for scripts")
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, "This address works once, for 2 minutes. To open it on another machine, first run there:\n    ssh -L 7422:127.0.0.1:7422 "+host+"\n",
		notes.String())
	for address, near := range map[string]bool{
		"": false, "http://[::1]:1/": true, "https://127.0.0.1:7422/": false, "http://10.0.0.1:7422/": false, "http://host:7422/": false,
	} {
		require.Equal(t, near, isNear(address), address)
	}
}

func TestElsewhereItIsServedOnLoopbackToWhoHasTheAddress(t *testing.T) {
	for _, address := range []string{"", "https://10.0.0.1:7422/login/x"} {
		ctx, cancel := context.WithCancel(t.Context())
		reader, writer := io.Pipe()
		ended := make(chan error, 1)
		p := &plan{print: true, socket: serveDaemon(t, address)}
		go func() { ended <- p.run(ctx, writer, io.Discard) }()
		var line string
		_, err := fmt.Fscanln(reader, &line)
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, reader) }()
		base := line[:strings.Index(line, "/login/")]

		require.Regexp(t, `^http://lockfs-[0-9a-z]{26}\.localhost:\d+$`, base)
		dial := func(ctx context.Context, network, address string) (net.Conn, error) { // what a browser makes of the name
			_, port, err := net.SplitHostPort(address)
			require.NoError(t, err)
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
		}
		transport := &http.Transport{DialContext: dial}
		defer transport.CloseIdleConnections()
		get := func(client *http.Client, url string) (int, string) {
			answer, err := client.Get(url)
			require.NoError(t, err)
			defer func() { _ = answer.Body.Close() }()
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			return answer.StatusCode, string(body)
		}
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		browser, stranger := &http.Client{Jar: jar, Timeout: 10 * time.Second, Transport: transport}, &http.Client{Timeout: 10 * time.Second, Transport: transport}
		port := base[strings.LastIndex(base, ":"):]
		code, _ := get(stranger, "http://127.0.0.1"+port+line[len(base):])
		require.Equal(t, http.StatusForbidden, code, "by another name the address does not work, and is not used up")
		code, _ = get(stranger, base+"/v1/locks")
		require.Equal(t, http.StatusUnauthorized, code)
		code, _ = get(stranger, base+"/login/guess")
		require.Equal(t, http.StatusUnauthorized, code)
		code, _ = get(browser, line)
		require.Equal(t, http.StatusOK, code)
		code, _ = get(stranger, line)
		require.Equal(t, http.StatusUnauthorized, code, "It works once")
		code, body := get(browser, base+"/events")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, fmt.Sprintf("the page at /events for %s, cookies %q", strings.TrimPrefix(base, "http://"), ""), body)
		cancel()
		require.NoError(t, <-ended)
	}
}

// TestTheAddressEnds: it works for two minutes.
func TestTheAddressEnds(t *testing.T) {
	d := newDoor("")
	d.ends = time.Now()
	require.False(t, d.open(d.secret))
	d.ends = time.Now().Add(linkTime)
	require.True(t, d.open(d.secret))
	require.False(t, d.open(d.secret), "once")
}

func TestItIsNotServedToTheNetwork(t *testing.T) {
	p := &plan{print: true, listen: "0.0.0.0:0", socket: serveDaemon(t, "")}
	require.ErrorContains(t, p.run(t.Context(), io.Discard, io.Discard), "loopback")
	p = &plan{print: true, socket: filepath.Join(t.TempDir(), "none.sock")}
	require.ErrorContains(t, p.run(t.Context(), io.Discard, io.Discard), "lockfs doctor")
}

// TestTheBrowserIsStartedWithoutTheSecret in its arguments, which every user can read: it gets a file that only this user can read.
func TestTheBrowserIsStartedWithoutTheSecret(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + dir + "/part && mv " + dir + "/part " + dir + "/args\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":1")
	t.Setenv("XDG_RUNTIME_DIR", dir)
	const address = "http://lockfs-x.localhost:7422/login/secret"
	var out bytes.Buffer
	require.NoError(t, new(plan).show(&out, io.Discard, address))
	require.Equal(t, address+"\n", out.String())
	var args []byte
	require.Eventually(t, func() bool {
		var err error
		args, err = os.ReadFile(filepath.Join(dir, "args"))
		return err == nil
	}, 10*time.Second, time.Millisecond)
	path := strings.TrimSpace(string(args))
	require.NotContains(t, path, "secret")
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(content), address)
}
