package enrolment

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"time"

	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
)

var errStillDue = errors.New("the one that the cluster gave is no better")

// Pauses of a Keeper.
const (
	lookInterval = 5 * time.Second  // between looks at the certificate, because cluster time may have been set
	firstRetry   = time.Second      // after a renewal that failed
	lastRetry    = 5 * time.Minute  // and again and again
	turnedPause  = 10 * time.Second // between renewals because a server has turned this host away
)

// Keeper keeps the certificate of this host good while it runs: it renews it when two thirds of its time are over, when another
// authority signs, and when a server turns this host away, as one does whose certificate has expired. No connection is lost by that.
type Keeper struct {
	credentials *identity.Credentials
	judge       identity.Judge
	logger      *slog.Logger
	servers     func() []string
	near        rpc.Node // nil: none
	refused     func(error)
	vet         func(*tls.ConnectionState) rpc.Vetting // nil: the judge knows the state

	wake chan struct{} // holds one

	mu      sync.Mutex
	signing identity.Fingerprint // that signs now; zero: not known
	turned  bool                 // a server has turned this host away
}

// ForServer makes the keeper of a server, which renews with the servers that it is told of at that moment, and first of all with the
// node of this process, which may lead: then it needs no connection to itself, which it would refuse once the certificate has
// expired. refused is told why the cluster does not renew the certificate, each time.
func ForServer(
	credentials *identity.Credentials, judge identity.Judge, near rpc.Node, servers func() []string, refused func(error), logger *slog.Logger,
) *Keeper {
	k := newKeeper(credentials, judge, servers, logger)
	k.near, k.refused = near, refused
	return k
}

func newKeeper(credentials *identity.Credentials, judge identity.Judge, servers func() []string, logger *slog.Logger) *Keeper {
	return &Keeper{credentials: credentials, judge: judge, servers: servers, logger: logger, wake: make(chan struct{}, 1)}
}

// Security is that of the connections that this host makes with its credentials.
func (k *Keeper) Security() *rpc.Security {
	return &rpc.Security{
		Client:     func(protocol string) *tls.Config { return k.credentials.ClientConfig(k.judge, protocol) },
		TurnedAway: k.turnedAway,
		Vet:        k.vet,
	}
}

// Signs tells which authority signs now, by its fingerprint.
func (k *Keeper) Signs(fingerprint []byte) {
	if len(fingerprint) != len(identity.Fingerprint{}) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if was := k.signing; was != identity.Fingerprint(fingerprint) {
		k.signing = identity.Fingerprint(fingerprint)
		k.hurry()
	}
}

func (k *Keeper) turnedAway() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turned = true
	k.hurry()
}

// hurry has the certificate looked at now.
func (k *Keeper) hurry() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run keeps the certificate good until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	retry, failures := firstRetry, 0
	var lastTurned time.Time
	for ctx.Err() == nil {
		turned := k.takeTurned()
		switch {
		case turned && time.Since(lastTurned) <= turnedPause:
			// Somebody may have given this host another identity, as lockfs up does with a new token.
			if err := k.credentials.Reload(); err != nil {
				k.logger.Warn("the identity of this host is not read", "error", err)
			}
			turned = false
		case turned:
			lastTurned = time.Now()
		}
		if k.due() || turned {
			err := k.renew(ctx, turned, failures%2 == 1)
			if ctx.Err() != nil {
				return
			}
			if err == nil && k.due() {
				err = errStillDue
			}
			if err != nil {
				k.logger.Warn("the certificate of this host is not renewed", "error", err, "until", k.credentials.Leaf().NotAfter)
				if no := new(rpc.RefusedError); errors.As(err, &no) && k.refused != nil {
					k.refused(err)
				}
				_ = pause.For(ctx, retry)
				retry, failures = min(2*retry, lastRetry), failures+1
				continue
			}
			retry, failures = firstRetry, 0
		}
		select {
		case <-k.wake:
		case <-time.After(k.untilDue()):
		case <-ctx.Done():
		}
	}
}

func (k *Keeper) takeTurned() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	turned := k.turned
	k.turned = false
	return turned
}

// due tells whether the certificate is to be renewed.
func (k *Keeper) due() bool {
	k.mu.Lock()
	signing := k.signing
	k.mu.Unlock()
	other := signing != identity.Fingerprint{} && signing != k.credentials.Signer()
	return other || k.credentials.NeedsRenewal(k.judge.Now())
}

func (k *Keeper) untilDue() time.Duration {
	return max(0, min(k.credentials.RenewAt().Sub(k.judge.Now()), lookInterval))
}

// renewTime is for one attempt.
const renewTime = 10 * time.Second

// renew gets a new certificate, unless another process of this host has got one meanwhile. A host with a certificate that may not be good
// enough asks without it. Other hosts do that at each second attempt only: a crowd of strangers asks there too.
func (k *Keeper) renew(ctx context.Context, turned, without bool) error {
	if err := k.credentials.Reload(); err != nil {
		return err
	}
	if !k.due() && !turned {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	peers := rpc.NewPeers
	if turned || without || k.credentials.Expired(k.judge.Now()) {
		peers = rpc.NewJoinPeers
	}
	reply, err := ask(ctx, k.near, peers(k.Security()), k.servers(), k.credentials.Key(), k.credentials.Name(), nil)
	if err != nil {
		return err
	}
	grant, err := grantOf(reply)
	if err == nil {
		err = k.credentials.Renew(grant)
	}
	if err != nil {
		return err
	}
	k.logger.Info("the certificate of this host was renewed", "until", k.credentials.Leaf().NotAfter)
	return nil
}
