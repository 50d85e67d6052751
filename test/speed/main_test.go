// Package speed measures the built program on hosts: failover, dead holders, handover beside etcd, many mounts.
package speed

import (
	"os"
	"testing"

	"lockfs/test/crowd"
	"lockfs/test/suite"
)

func TestMain(m *testing.M) {
	crowd.Main()
	os.Exit(suite.Main(m))
}
