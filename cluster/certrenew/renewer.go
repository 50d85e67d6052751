package certrenew

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

// Pauses of a Renewer.
const (
	checkInterval = 5 * time.Second  // between checks, because cluster time may be set
	firstRetry    = time.Second      // after a failed renewal
	lastRetry     = 5 * time.Minute  // after many of them
	rejectedPause = 10 * time.Second // between renewals after rejections
)

// Renewer renews the certificate of this host: after two thirds of its validity, when another CA signs,
// and when a server rejects this host, for instance because its certificate has expired. Connections are
// not lost.
type Renewer struct {
	credentials *identity.Credentials
	judge       identity.Verifier
	logger      *slog.Logger
	servers     func() []string
	local       rpc.Node // nil: none
	refused     func(error)
	vet         func(*tls.ConnectionState) rpc.Vetting // nil: the verifier knows the state

	wake chan struct{} // capacity 1

	mu       sync.Mutex
	signer   identity.Fingerprint // current signing CA; zero: unknown
	rejected bool                 // a server has rejected this host
}

// ForServer returns the renewer of a server. It asks the node of this process first, which may lead:
// after the expiry a connection to itself would be refused. Then it asks the current servers. refused
// gets each refusal by the cluster.
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

// Security returns the security of this host's connections.
func (r *Renewer) Security() *rpc.Security {
	return &rpc.Security{
		Client:     func(protocol string) *tls.Config { return r.credentials.ClientConfig(r.judge, protocol) },
		OnRejected: r.onRejected,
		Vet:        r.vet,
	}
}

// SetSigner sets the signing CA by its fingerprint.
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

// wakeUp checks the certificate now.
func (r *Renewer) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run renews until ctx ends.
func (r *Renewer) Run(ctx context.Context) {
	retry, failures := firstRetry, 0
	var lastTurned time.Time
	for ctx.Err() == nil {
		turned := r.takeRejected()
		switch {
		case turned && time.Since(lastTurned) <= rejectedPause:
			// Another process may have replaced the identity, like lockfs up with a new token.
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

// due reports whether a renewal is due.
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

// renewTime limits one attempt.
const renewTime = 10 * time.Second

// renew gets a new certificate, unless another process of this host has one. A host with a doubtful
// certificate asks without it. Other hosts do so at each second attempt only, because many strangers may
// ask there too.
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
