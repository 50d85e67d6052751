package daemon

import (
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"lockfs/cmd/lockfs/internal/cli"
)

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
