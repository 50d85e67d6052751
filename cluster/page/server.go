package page

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"log/slog"
	"net/http"

	"lockfs/cluster/loopback"
	"lockfs/cluster/rpc"
)

// Config says for whom the page is, and whom it asks.
type Config struct {
	Front       rpc.Node              // answers the caller that the context of a call names
	Administers func(rpc.Caller) bool // who may release locks and forget hosts
	Host        string                // name of this host in events
	Mount       string                // where this host has the locks, for what to type; empty: nowhere
	Address     string                // URL at which [Server.Handler] is served; empty: nowhere
	Logger      *slog.Logger
}

// Server serves the page.
type Server struct {
	cfg       Config
	name      string // see Name
	logins    *logins
	secret    [32]byte // of the codes in forms
	overview  *overviewCache
	listings  *listings
	templates *template.Template

	closing context.Context
	close   context.CancelFunc
	room    chan struct{} // one of each stream
}

// mostStreams is how many pages are kept live at a time.
const mostStreams = 128

// New makes a server.
func New(cfg Config) *Server {
	cfg.Mount = cmp.Or(cfg.Mount, "/locks")
	s := &Server{cfg: cfg, name: loopback.NewName(), logins: newLogins(), room: make(chan struct{}, mostStreams)}
	_, _ = rand.Read(s.secret[:]) // never fails
	s.overview = &overviewCache{ask: asker{cfg.Front}}
	s.listings = newListings(asker{cfg.Front})
	s.templates = parseTemplates()
	s.closing, s.close = context.WithCancel(context.Background())
	return s
}

// Close ends the streams, which would keep an HTTP server from ending, and does not wait for them.
func (s *Server) Close() error {
	s.close()
	return nil
}

// enter answers that there is no room if there is none for another stream.
func (s *Server) enter(w http.ResponseWriter) bool {
	select {
	case s.room <- struct{}{}:
		return true
	default:
		writeJSON(w, http.StatusServiceUnavailable, apiError{"too many pages and streams are live"})
		return false
	}
}

func (s *Server) leave() { <-s.room }

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
