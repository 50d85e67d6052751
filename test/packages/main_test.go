// Package packages shows what is released at work: packages installed, upgraded and removed on a system of their own, and the image
// beside others that share a mount.
package packages

import (
	"os"
	"testing"

	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {
	status := testcluster.Main(m)
	if releaserDir != "" {
		_ = os.RemoveAll(releaserDir)
	}
	os.Exit(status)
}
