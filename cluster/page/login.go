package page

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"lockfs/cluster/rpc"
)

const (
	// inviteTime is how long an address for a login works, and loginTime how long the login lasts.
	inviteTime = 2 * time.Minute
	loginTime  = 12 * time.Hour
	// mostLogins bounds what is remembered; the oldest go first.
	mostLogins = 1000

	cookieName = "lockfs_login"
)

// logins are who has logged in, and who has been given an address for it. Secrets are kept by their hashes.
type logins struct {
	now func() time.Time

	mu      sync.Mutex
	invited map[[32]byte]login
	in      map[[32]byte]login
}

type login struct {
	caller rpc.Caller
	ends   time.Time
}

func newLogins() *logins {
	return &logins{now: time.Now, invited: make(map[[32]byte]login), in: make(map[[32]byte]login)}
}

// invite answers a secret by which a caller can log in once.
func (l *logins) invite(caller rpc.Caller) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(l.invited, login{caller, l.now().Add(inviteTime)})
}

// enter takes the secret of an invitation for that of a login.
func (l *logins) enter(secret string) (entered string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sha256.Sum256([]byte(secret))
	invited, found := l.invited[key]
	delete(l.invited, key)
	if !found || !l.now().Before(invited.ends) {
		return "", false
	}
	return l.add(l.in, login{invited.caller, l.now().Add(loginTime)}), true
}

func (l *logins) add(to map[[32]byte]login, one login) string {
	if len(to) >= mostLogins {
		oldest, first := [32]byte{}, true
		for key, other := range to {
			if first || other.ends.Before(to[oldest].ends) {
				oldest, first = key, false
			}
		}
		delete(to, oldest)
	}
	secret := rand.Text()
	to[sha256.Sum256([]byte(secret))] = one
	return secret
}

// who answers whose login has a secret.
func (l *logins) who(secret string) (rpc.Caller, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, found := l.in[sha256.Sum256([]byte(secret))]
	return one.caller, found && l.now().Before(one.ends)
}

func (l *logins) leave(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.in, sha256.Sum256([]byte(secret)))
}

// Invitation is the answer to POST /v1/login.
type Invitation struct {
	URL  string `json:"url"`  // where to log in; empty: this daemon serves the page on its socket only
	User uint32 `json:"user"` // uid as whom
}

func (s *Server) invite(w http.ResponseWriter, r *http.Request) {
	caller := rpc.CallerOf(r.Context())
	answer := Invitation{User: caller.UID}
	if s.cfg.Address != "" {
		answer.URL = s.cfg.Address + "/login/" + s.logins.invite(caller)
	}
	writeJSON(w, http.StatusOK, answer)
}

// login makes of an address that works once a cookie.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	secret, ok := s.logins.enter(r.PathValue("token"))
	if !ok {
		s.fail(w, r, http.StatusForbidden, "This address has been used, or is too old.", "lockfs ui")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: secret, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
		MaxAge: int(loginTime.Seconds()),
	})
	// A redirect from an address that was opened elsewhere would come without a cookie that is strict; a page that goes on is this site's.
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
	s.fail(w, r, http.StatusOK, "You are logged out.", "lockfs ui")
}

// loggedIn lets those in who have a login's cookie.
func (s *Server) loggedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(cookieName)
		if err == nil {
			if caller, ok := s.logins.who(cookie.Value); ok {
				next.ServeHTTP(w, r.WithContext(rpc.WithCaller(r.Context(), caller)))
				return
			}
		}
		s.fail(w, r, http.StatusUnauthorized, "You are not logged in. On this host, this opens the page as whoever runs it:", "lockfs ui")
	})
}

// code is what a form has to have: nobody else's page can know it.
func (s *Server) code(r *http.Request) string {
	mac := hmac.New(sha256.New, s.secret[:])
	cookie, err := r.Cookie(cookieName)
	if err == nil {
		mac.Write([]byte(cookie.Value))
	}
	mac.Write([]byte(rpc.CallerOf(r.Context()).String()))
	return hex.EncodeToString(mac.Sum(nil))
}

// isOurs tells whether a form that was sent is one of this server's, and else answers it.
func (s *Server) isOurs(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if hmac.Equal([]byte(r.PostFormValue("code")), []byte(s.code(r))) {
		return true
	}
	s.fail(w, r, http.StatusForbidden, "This form is not of this page, or the daemon was started again since. Nothing was done.", "")
	return false
}
