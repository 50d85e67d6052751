// Package budgets shows that one user takes nothing from the others: an ordinary user uses up each resource of a host and of the cluster,
// while other users work on the same host and on another one.
package budgets

import (
	"os"
	"testing"

	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m))
}
