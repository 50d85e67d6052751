// Package security shows that nobody gets in who does not belong: what strangers, expired and revoked hosts and mounts that want
// more than they may are answered on each port of a cluster, what becomes of tokens that are not good, and that renewal, rotation,
// revocation and wrong clocks let nobody down who does belong.
package security

import (
	"os"
	"testing"

	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m))
}
