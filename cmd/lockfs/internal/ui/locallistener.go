package ui

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockfs/cluster/loopback"
)

// door serves the page of a daemon on loopback to one browser, which has opened a one-time address. The
// daemon sees this process's user, so other users of the host, with access to loopback too, must not get in.
type door struct {
	name   string // host name of the page
	daemon http.Handler
	cookie string

	mu     sync.Mutex
	secret string    // empty after its use
	ends   time.Time // of the secret
}

// linkTime is the validity of a login address, also of one from a daemon.
const linkTime = 2 * time.Minute

func newDoor(socket string) *door {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &door{
		name: loopback.NewName(), cookie: rand.Text(), secret: rand.Text(), ends: time.Now().Add(linkTime),
		daemon: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host = "http", "lockfs"
				r.Out.Host = r.In.Host // forms check their origin
				r.Out.Header.Del("Cookie")
			},
			Transport: &http.Transport{DialContext: dial}, FlushInterval: -1,
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				http.Error(w, "the daemon does not answer: "+err.Error(), http.StatusBadGateway)
			},
		},
	}
}

const (
	doorPath   = "/login/"
	doorCookie = "lockfs_door"
)

// invite returns the one-time address for the port of a listener.
func (d *door) invite(port int) string {
	return "http://" + net.JoinHostPort(d.name, strconv.Itoa(port)) + doorPath + d.secret
}

// ServeHTTP implements http.Handler. The page has a host name unknown to other users of the host, so its
// cookie never reaches their servers.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if loopback.HostName(r) != d.name {
		http.Error(w, "Open the address printed by lockfs ui. It works once; for another one, run lockfs ui again.", http.StatusForbidden)
		return
	}
	if secret, is := strings.CutPrefix(r.URL.Path, doorPath); is && d.open(secret) {
		http.SetCookie(w, &http.Cookie{Name: doorCookie, Value: d.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!DOCTYPE html><title>lockfs</title><meta http-equiv="refresh" content="0; url=/"><a href="/">Go on to the locks</a>`))
		return
	}
	cookie, err := r.Cookie(doorCookie)
	if err != nil || subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(d.cookie)) != 1 {
		http.Error(w, "Open the address printed by lockfs ui. It works once; for another one, run lockfs ui again.", http.StatusUnauthorized)
		return
	}
	d.daemon.ServeHTTP(w, r)
}

// open reports whether a secret is valid, and invalidates it.
func (d *door) open(secret string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	ok := d.secret != "" && time.Now().Before(d.ends) && subtle.ConstantTimeCompare([]byte(secret), []byte(d.secret)) == 1
	if ok {
		d.secret = ""
	}
	return ok
}
