package daemon

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestUnderstandsCommandLines(t *testing.T) {
	for line, understood := range map[string]bool{
		"lockfs mount --servers 10.0.0.1 /locks":                    true,
		"/usr/bin/lockfs server --data /d --mount /locks":           true,
		"/sbin/mount.lockfs 10.0.0.1 /locks -o name=m,insecure":     true,
		"mount.fuse.lockfs 10.0.0.1 /locks -o rw":                   true,
		"lockfs mount --of-another-version /locks":                  false,
		"lockfs mount --wait never /locks":                          false,
		"lockfs mount":                                              false,
		"lockfs of-another-version":                                 false,
		"mount.lockfs 10.0.0.1 /locks -o rw --of-another-version 1": false,
	} {
		root := &cobra.Command{Use: "lockfs"}
		root.AddCommand(Commands()...)
		err := understands(root, strings.Fields(line))
		require.Equal(t, understood, err == nil, "%s: %v", line, err)
	}
}
