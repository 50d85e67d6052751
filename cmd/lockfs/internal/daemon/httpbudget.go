package daemon

import (
	"errors"
	"net"
	"net/http"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/budget"
)

const (
	// scrapeTime limits how long a client may take to read metrics or health.
	scrapeTime = 30 * time.Second
	// mostScrapes limits concurrent readers of metrics.
	mostScrapes = 32
)

// callBudget returns the budget for concurrent requests to an endpoint with conns connections. A user or
// address may use an eighth of it, and an eighth is reserved for root and health checks.
func callBudget(what string, conns uint64) *budget.Pool {
	each := budget.Limit{Budget: "requests by " + what, Of: "user or address", Most: conns / 8}
	all := each
	all.Of, all.Most = "endpoint", conns
	return budget.NewPool(each, all, conns/8)
}

// withinBudget replies 429 to a user with too many concurrent requests, and 503 if all users together have
// too many.
func withinBudget(pool *budget.Pool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := rpc.CallerOf(r.Context())
		user, standing := caller.User(), caller.Standing()
		if caller.Role != rpc.RoleUser {
			host, _, _ := net.SplitHostPort(r.RemoteAddr)
			user = budget.User{Host: host}
		}
		exceeded := new(budget.ExceededError)
		if err := pool.Take(user, 1, standing); errors.As(err, &exceeded) {
			http.Error(w, exceeded.Error(), exceeded.Status())
			return
		}
		defer pool.Give(user, 1, standing)
		next.ServeHTTP(w, r)
	})
}

// healthChecks serves /metrics and /healthz outside of the budget. Each client has scrapeTime to read.
func healthChecks(next http.Handler) http.Handler {
	scrapes := make(chan struct{}, mostScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(scrapeTime))
		if r.URL.Path == "/metrics" {
			select {
			case scrapes <- struct{}{}:
				defer func() { <-scrapes }()
			default:
				http.Error(w, "too many clients read the metrics", http.StatusServiceUnavailable)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
