package fusefs

import (
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"
	"github.com/stretchr/testify/require"
)

// notOurs are cases of go-fuse's that are left out, and why.
var notOurs = map[string]string{
	"Tmpfile":             "O_TMPFILE is refused",
	"XAttrLarge":          "extended attributes are small",
	"FcntlFlockLocksFile": "it wants two fcntl locks of one process to be in each other's way, unlike POSIX",
}

// TestPosixOfGoFuse does the cases that go-fuse has for file systems. What lockfs promises of each call is
// checked by package test/conformance.
func TestPosixOfGoFuse(t *testing.T) {
	for name := range notOurs {
		require.Contains(t, posixtest.All, name)
	}
	for name, do := range posixtest.All {
		if notOurs[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir, _ := mountFor(t, newCluster())
			do(t, dir)
		})
	}
}
