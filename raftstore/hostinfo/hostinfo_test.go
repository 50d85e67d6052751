package hostinfo

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBootTimeIsTheKernels(t *testing.T) {
	before := BootTime()
	text, err := os.ReadFile("/proc/uptime")
	require.NoError(t, err)
	var uptime float64
	_, err = fmt.Sscan(string(text), &uptime)
	require.NoError(t, err)
	require.InDelta(t, before.Seconds(), uptime, 1)
	require.GreaterOrEqual(t, BootTime(), before)
}

func TestPIDNamespaceIsThatOfTheLink(t *testing.T) {
	inode, err := PIDNamespace()
	require.NoError(t, err)
	link, err := os.Readlink("/proc/self/ns/pid")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("pid:[%d]", inode), link)
}
