// Package loopback protects HTTP endpoints on loopback. Every user of the host reaches them, and so does every web page in a browser there: by
// its own requests, and by a name of its own that resolves to 127.0.0.1 (DNS rebinding). Cookies are sent to every port of a host name, also to
// ports on which another user serves.
package loopback

import (
	"crypto/rand"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
)

// NewName returns a host name that resolves to loopback in browsers (RFC 6761, section 6.3) and that no other user knows. The cookies of a page
// that is served at such a name reach no other port.
func NewName() string { return "lockfs-" + strings.ToLower(rand.Text()) + ".localhost" }

// Guard passes on requests that name this host as localhost, by a loopback address, or by one of names, and come from no page of another
// origin. The others get status 403.
func Guard(next http.Handler, names ...string) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := HostName(r); name != "localhost" && !net.ParseIP(name).IsLoopback() && !slices.Contains(names, name) {
			http.Error(w, "This endpoint is for programs on its host, which call it localhost or 127.0.0.1.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// HostName returns the host name that a request gives, without a port and in lower case.
func HostName(r *http.Request) string {
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = strings.Trim(r.Host, "[]")
	}
	return strings.ToLower(name)
}

// RequireJSON refuses POST requests of another content type than application/json with status 415. A browser asks the server before it sends that
// type to another origin, which a plain form or a fetch in mode no-cors does not.
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
