// Package primitives shows that exclusive creation, removal and everything else that programs do to files does on a mount what
// it does on a local disk, between hosts too: O_EXCL, mkdir, link, rename, unmodified programs, POSIX call by call.
package primitives

import (
	"os"
	"testing"

	"lockfs/test/conformance"
	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {
	conformance.Main()
	os.Exit(testcluster.Main(m))
}
