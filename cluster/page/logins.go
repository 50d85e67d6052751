package page

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"lockfs/cluster/rpc"
)

const (
	// inviteTime is the validity of a login address, loginTime of a login.
	inviteTime = 2 * time.Minute
	loginTime  = 12 * time.Hour
	// mostLogins limits the stored logins; the oldest are dropped first.
	mostLogins = 1000

	cookieName = "lockfs_login"
)

// logins stores invitations and logins by the hashes of their secrets.
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

// invite returns a secret for one login of a caller.
func (l *logins) invite(caller rpc.Caller) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(l.invited, login{caller, l.now().Add(inviteTime)})
}

// enter exchanges the secret of an invitation for the secret of a login.
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

// who returns the caller with a login secret.
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
