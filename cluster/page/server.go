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

// Config configures a server.
type Config struct {
	Front       rpc.Node              // answers queries for the caller of a context
	Administers func(rpc.Caller) bool // callers permitted to release locks and forget hosts
	Host        string                // name of this host in events
	Mount       string                // mount directory on this host, for commands; empty: none
	Address     string                // URL of [Server.Handler]; empty: none
	Logger      *slog.Logger
}

// Server serves the pages and the JSON of one host.
type Server struct {
	cfg       Config
	name      string // see Name
	logins    *logins
	secret    [32]byte // key of the codes in forms
	overview  *overviewCache
	listings  *listings
	users     *users
	templates *template.Template

	closing context.Context
	close   context.CancelFunc
	streams *budget.Pool
}

// Limits of live pages and event streams: for all users, for each user, and for root.
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

// Budgets returns the budgets of the page's users.
func (s *Server) Budgets() []*budget.Pool { return []*budget.Pool{s.streams} }

// New returns a server.
func New(cfg Config) *Server {
	cfg.Mount = cmp.Or(cfg.Mount, "/locks")
	s := &Server{cfg: cfg, name: loopback.NewName(), logins: newLogins(), streams: newStreams()}
	_, _ = rand.Read(s.secret[:]) // never fails
	s.overview = &overviewCache{ask: asker{cfg.Front}}
	s.listings = newListings(asker{cfg.Front})
	s.users = new(users)
	s.templates = parseTemplates(s.users, s.overview.now)
	s.closing, s.close = context.WithCancel(context.Background())
	return s
}

// Close ends the streams without waiting for them. Otherwise they would keep an HTTP server from shutting
// down.
func (s *Server) Close() error {
	s.close()
	return nil
}

// enter reserves a stream and returns a function to release it. If there is no room, it sends an error and
// returns nil.
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

// code returns the code for forms, unknown to pages of other sites.
func (s *Server) code(r *http.Request) string {
	mac := hmac.New(sha256.New, s.secret[:])
	cookie, err := r.Cookie(cookieName)
	if err == nil {
		mac.Write([]byte(cookie.Value))
	}
	mac.Write([]byte(rpc.CallerOf(r.Context()).String()))
	return hex.EncodeToString(mac.Sum(nil))
}
