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
	checkInterval = 5 * time.Second  // between looks at the certificate, because cluster time may have been set
	firstRetry    = time.Second      // after a renewal that failed
	lastRetry     = 5 * time.Minute  // and again and again
	rejectedPause = 10 * time.Second // between renewals because a server has turned this host away
)

// Renewer keeps the certificate of this host good while it runs: it renews it when two thirds of its time are over, when another
// authority signs, and when a server turns this host away, as one does whose certificate has expired. No connection is lost by that.
type Renewer struct {
	credentials *identity.Credentials
	judge       identity.Verifier
	logger      *slog.Logger
	servers     func() []string
	local       rpc.Node // nil: none
	refused     func(error)
	vet         func(*tls.ConnectionState) rpc.Vetting // nil: the judge knows the state

	wake chan struct{} // holds one

	mu       sync.Mutex
	signer   identity.Fingerprint // that signs now; zero: not known
	rejected bool                 // a server has turned this host away
}

// ForServer makes the keeper of a server, which renews with the servers that it is told of at that moment, and first of all with the
// node of this process, which may lead: then it needs no connection to itself, which it would refuse once the certificate has
// expired. refused is told why the cluster does not renew the certificate, each time.
func ForServer(
	credentials *identity.Credentials, judge identity.Verifier, near rpc.Node, servers func() []string, refused func(error), logger *slog.Logger,
) *Renewer {
	k := newRenewer(credentials, judge, servers, logger)
	k.local, k.refused = near, refused
	return k
}

func newRenewer(credentials *identity.Credentials, judge identity.Verifier, servers func() []string, logger *slog.Logger) *Renewer {
	return &Renewer{credentials: credentials, judge: judge, servers: servers, logger: logger, wake: make(chan struct{}, 1)}
}

// Security is that of the connections that this host makes with its credentials.
func (r *Renewer) Security() *rpc.Security {
	return &rpc.Security{
		Client:     func(protocol string) *tls.Config { return r.credentials.ClientConfig(r.judge, protocol) },
		OnRejected: r.onRejected,
		Vet:        r.vet,
	}
}

// SetSigner tells which authority signs now, by its fingerprint.
func (r *Renewer) SetSigner(fingerprint []byte) {
	if len(fingerprint) != len(identity.Fingerprint{}) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.signer; was != identity.Fingerprint(fingerprint) {
		r.signer = identity.Fingerprint(fingerprint)
		r.wakeUp()
	}
}

func (r *Renewer) onRejected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejected = true
	r.wakeUp()
}

// wakeUp has the certificate looked at now.
func (r *Renewer) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run keeps the certificate good until ctx ends.
func (r *Renewer) Run(ctx context.Context) {
	retry, failures := firstRetry, 0
	var lastTurned time.Time
	for ctx.Err() == nil {
		turned := r.takeRejected()
		switch {
		case turned && time.Since(lastTurned) <= rejectedPause:
			// Somebody may have given this host another identity, as lockfs up does with a new token.
			if err := r.credentials.Reload(); err != nil {
				r.logger.Warn("the identity of this host is not read", "error", err)
			}
			turned = false
		case turned:
			lastTurned = time.Now()
		}
		if r.due() || turned {
			err := r.renew(ctx, turned, failures%2 == 1)
			if ctx.Err() != nil {
				return
			}
			if err == nil && r.due() {
				err = errStillDue
			}
			if err != nil {
				r.logger.Warn("the certificate of this host is not renewed", "error", err, "until", r.credentials.Leaf().NotAfter)
				if no := new(rpc.RefusedError); errors.As(err, &no) && r.refused != nil {
					r.refused(err)
				}
				_ = pause.For(ctx, retry)
				retry, failures = min(2*retry, lastRetry), failures+1
				continue
			}
			retry, failures = firstRetry, 0
		}
		select {
		case <-r.wake:
		case <-time.After(r.untilDue()):
		case <-ctx.Done():
		}
	}
}

func (r *Renewer) takeRejected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	turned := r.rejected
	r.rejected = false
	return turned
}

// due tells whether the certificate is to be renewed.
func (r *Renewer) due() bool {
	r.mu.Lock()
	signing := r.signer
	r.mu.Unlock()
	other := signing != identity.Fingerprint{} && signing != r.credentials.Signer()
	return other || r.credentials.NeedsRenewal(r.judge.Now())
}

func (r *Renewer) untilDue() time.Duration {
	return max(0, min(r.credentials.RenewAt().Sub(r.judge.Now()), checkInterval))
}

// renewTime is for one attempt.
const renewTime = 10 * time.Second

// renew gets a new certificate, unless another process of this host has got one meanwhile. A host with a certificate that may not be good
// enough asks without it. Other hosts do that at each second attempt only: a crowd of strangers asks there too.
func (r *Renewer) renew(ctx context.Context, turned, without bool) error {
	if err := r.credentials.Reload(); err != nil {
		return err
	}
	if !r.due() && !turned {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	peers := rpc.NewPeers
	if turned || without || r.credentials.Expired(r.judge.Now()) {
		peers = rpc.NewJoinPeers
	}
	reply, err := ask(ctx, r.local, peers(r.Security()), r.servers(), r.credentials.Key(), r.credentials.Name(), nil)
	if err != nil {
		return err
	}
	grant, err := issuedCertOf(reply)
	if err == nil {
		err = r.credentials.Renew(grant)
	}
	if err != nil {
		return err
	}
	r.logger.Info("the certificate of this host was renewed", "until", r.credentials.Leaf().NotAfter)
	return nil
}
