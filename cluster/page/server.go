package page

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"log/slog"
	"net/http"

	"lockfs/cluster/loopback"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/budget"
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
	streams *budget.Pool
}

// How many pages and streams of events are live at a time, in all, of one user, and of root alone.
const (
	mostStreams     = 128
	streamsPerUser  = 16
	streamsReserved = 16
)

func newStreams() *budget.Pool {
	limit := budget.Limit{Budget: "live pages and event streams", Of: "user", Most: streamsPerUser}
	all := limit
	all.Of, all.Most = "daemon", mostStreams
	return budget.NewPool(limit, all, streamsReserved)
}

// Budgets returns the budgets that the page counts for its users.
func (s *Server) Budgets() []*budget.Pool { return []*budget.Pool{s.streams} }

// New makes a server.
func New(cfg Config) *Server {
	cfg.Mount = cmp.Or(cfg.Mount, "/locks")
	s := &Server{cfg: cfg, name: loopback.NewName(), logins: newLogins(), streams: newStreams()}
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

// enter returns the function that ends a stream. It answers that there is no room if there is none for another stream, and returns nil.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) (leave func()) {
	caller := rpc.CallerOf(r.Context())
	user, standing := caller.User(), caller.Standing()
	exceeded := new(budget.ExceededError)
	if err := s.streams.Take(user, 1, standing); errors.As(err, &exceeded) {
		writeJSON(w, exceeded.Status(), apiError{exceeded.Error()})
		return nil
	}
	return func() { s.streams.Give(user, 1, standing) }
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
