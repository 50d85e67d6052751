// Package speed measures the built program on hosts: failover, dead holders, handover beside etcd, many mounts.
package speed

import (
	"os"
	"testing"

	"lockfs/test/suite"
)

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
