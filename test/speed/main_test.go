// Package speed measures the built program on hosts: failover, dead holders, handover beside etcd, many mounts.
package speed

import (
	"os"
	"testing"

	"lockfs/test/load"
	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {
	load.Main()
	os.Exit(testcluster.Main(m))
}
