// Package operation shows what those who run a cluster rely on: starting and stopping, mounts, members, machines, limits, rules,
// the audit, the alert rules, what the commands list and say of what is wrong, and lockfs bench.
package operation

import (
	"os"
	"testing"

	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {

	os.Exit(testcluster.Main(m))
}
