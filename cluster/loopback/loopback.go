// Package loopback protects HTTP endpoints on loopback. Every user of the host can reach them, and so can web
// pages in a browser there. Pages can send requests, or resolve their own name to 127.0.0.1 (DNS rebinding).
// Browsers send cookies to all ports of a host name, including those of other users' servers.
package loopback

import (
	"crypto/rand"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
)

// NewName returns a random host name, unknown to other users, which resolves to loopback in browsers (RFC
// 6761, section 6.3). Cookies of a page with this name reach no other port.
func NewName() string { return "lockfs-" + strings.ToLower(rand.Text()) + ".localhost" }

// Guard accepts requests to localhost, a loopback address, or one of names, except from pages of another
// origin. It refuses all others with status 403.
func Guard(next http.Handler, names ...string) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := HostName(r); name != "localhost" && !net.ParseIP(name).IsLoopback() && !slices.Contains(names, name) {
			http.Error(w, "This endpoint is for programs on its host, which call it localhost or 127.0.0.1.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// HostName returns the host name in a request, in lower case and without a port.
func HostName(r *http.Request) string {
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = strings.Trim(r.Host, "[]")
	}
	return strings.ToLower(name)
}

// RequireJSON refuses POST requests with a content type other than application/json with status 415. A
// browser sends this type to another origin only with the server's permission; plain forms and no-cors
// requests cannot have it.
func RequireJSON(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if r.Method == http.MethodPost && (err != nil || kind != "application/json") {
			w.Header().Set("Accept-Post", "application/json")
			http.Error(w, "Send the request with the header Content-Type: application/json.", http.StatusUnsupportedMediaType)
			return
		}
		next.ServeHTTP(w, r)
	})
}
