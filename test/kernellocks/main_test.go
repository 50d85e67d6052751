// Package kernellocks shows that flock(2) and fcntl(2) answer between hosts what they answer on one, and what becomes of
// locks and waiters whose process, mount or host fails.
package kernellocks

import (
	"os"
	"testing"

	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {

	os.Exit(testcluster.Main(m))
}
