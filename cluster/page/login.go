package page

import (
	"crypto/hmac"
	"net"
	"net/http"
	"net/url"

	"lockfs/cluster/loopback"
	"lockfs/cluster/rpc"
)

// Invitation is the answer to POST /v1/login.
type Invitation struct {
	URL  string `json:"url"`  // address for the login; empty: the page is served on the socket only
	User uint32 `json:"user"` // uid of the login
}

func (s *Server) invite(w http.ResponseWriter, r *http.Request) {
	caller := rpc.CallerOf(r.Context())
	answer := Invitation{User: caller.UID}
	if s.cfg.Address != "" {
		answer.URL = s.address() + "/login/" + s.logins.invite(caller)
	}
	writeJSON(w, http.StatusOK, answer)
}

// Name returns the page's own host name on loopback. It keeps the login cookies from other users' servers.
func (s *Server) Name() string { return s.name }

// isLocal reports whether the page is served on loopback.
func (s *Server) isLocal() bool {
	u, err := url.Parse(s.cfg.Address)
	return err == nil && net.ParseIP(u.Hostname()).IsLoopback()
}

// address returns the URL of the page, under its own name if it is served on loopback.
func (s *Server) address() string {
	if !s.isLocal() {
		return s.cfg.Address
	}
	u, _ := url.Parse(s.cfg.Address)
	return u.Scheme + "://" + net.JoinHostPort(s.name, u.Port())
}

// underItsName refuses requests to a page on loopback by another name.
func (s *Server) underItsName(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.isLocal() && loopback.HostName(r) != s.name {
			s.fail(w, r, http.StatusForbidden, "The page has another name on this host. Open it with:", "lockfs ui")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// login exchanges a one-time address for a cookie.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	secret, ok := s.logins.enter(r.PathValue("token"))
	if !ok {
		s.fail(w, r, http.StatusForbidden, "This address has been used, or is too old. Get a new one with:", "lockfs ui")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: secret, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
		MaxAge: int(loginTime.Seconds()),
	})
	// A redirect from an address opened elsewhere would not send a strict cookie. A page with a link belongs
	// to this site.
	s.render(w, r, http.StatusOK, "welcome", nil)
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if !s.isOurs(w, r) {
		return
	}
	if cookie, err := r.Cookie(cookieName); err == nil {
		s.logins.leave(cookie.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1})
	s.fail(w, r, http.StatusOK, "You are logged out. Log in again with:", "lockfs ui")
}

// loggedIn accepts requests with a login cookie.
func (s *Server) loggedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(cookieName)
		if err == nil {
			if caller, ok := s.logins.who(cookie.Value); ok {
				next.ServeHTTP(w, r.WithContext(rpc.WithCaller(r.Context(), caller)))
				return
			}
		}
		s.fail(w, r, http.StatusUnauthorized, "You are not logged in. Run this command on this host, and open the address it prints:", "lockfs ui")
	})
}

// isOurs reports whether a form comes from this server, and else sends a refusal.
func (s *Server) isOurs(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if hmac.Equal([]byte(r.PostFormValue("code")), []byte(s.code(r))) {
		return true
	}
	s.fail(w, r, http.StatusForbidden, "This form does not belong to this page, or the daemon has restarted since. Nothing was changed.", "")
	return false
}
