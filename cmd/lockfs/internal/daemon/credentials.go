package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

// readToken reads the token of a flag; nil if none is given.
func readToken(given string, insecure bool, stdin io.Reader) (*identity.Token, error) {
	switch {
	case given == "":
		return nil, nil
	case insecure:
		return nil, errors.New("a token needs certificates, and --insecure turns them off: give one of them")
	}
	return cli.ReadToken(given, stdin)
}

// identify returns the identity of this host in the cluster of the mount, or enrols it with a token.
func (p *mountPlan) identify(ctx context.Context, logger *slog.Logger) (*certrenew.MountRenewer, error) {
	dir := p.identity
	if dir == "" {
		dir = cli.DefaultIdentity()
	}
	credentials, err := identity.Load(dir)
	if errors.Is(err, identity.ErrNone) {
		credentials, err = p.enter(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	name := credentials.Name().Host
	if p.host != "" && p.host != name {
		return nil, fmt.Errorf("the certificate in %[2]s is for %[1]s, not for %[3]s: leave --name out, or enrol this host again", name, dir, p.host)
	}
	p.host = name
	if len(p.servers) == 0 {
		p.servers = credentials.Servers()
	}
	keeper := certrenew.ForMount(credentials, logger)
	p.protect = func(listener net.Listener) net.Listener { return protect(listener, credentials, keeper.Judge()) }
	return keeper, nil
}

// enter enrols this host with the token.
func (p *mountPlan) enter(ctx context.Context, dir string) (*identity.Credentials, error) {
	if p.token == nil {
		return nil, fmt.Errorf("%s: %w; give --token or --identity DIR, or --insecure if the servers run with it", dir, identity.ErrNone)
	}
	if p.token.Role != identity.Client {
		return nil, errors.New("the token is for a server: create one for a mount with `lockfs token create --role client`")
	}
	name := p.host
	if name == "" {
		var err error
		if name, err = cli.HostName(); err != nil {
			return nil, err
		}
	}
	joined, err := certrenew.Join(ctx, p.token, name, dir, nil)
	if err != nil {
		return nil, err
	}
	return joined.Credentials, nil
}

// CertificateCollector exports the expiry of the certificate in an identity directory, if it has one.
type CertificateCollector struct{ Dir string }

var _ prometheus.Collector = CertificateCollector{}

var expiryDesc = prometheus.NewDesc("lockfs_certificate_expiry_timestamp_seconds",
	"When this host's certificate expires, in seconds since 1970.", []string{"file"}, nil)

// Describe implements prometheus.Collector.
func (c CertificateCollector) Describe(descs chan<- *prometheus.Desc) { descs <- expiryDesc }

// Collect implements prometheus.Collector.
func (c CertificateCollector) Collect(metrics chan<- prometheus.Metric) {
	path := filepath.Join(c.Dir, cli.LeafFile)
	if leaf, err := cli.ReadLeaf(path); err == nil {
		metrics <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(leaf.NotAfter.Unix()), path)
	}
}

const insecureUsage = "plain TCP: every caller may do everything, under any name"
