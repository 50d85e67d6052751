package thread

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFcntlCommandOf32Bits(t *testing.T) {
	useProc(t)
	require.NoError(t, tell("221 0x3 0x25 0xffe20aae 0x0 0x0 0x0 0xffe1f850 0x8048069\n"))
	require.Equal(t, unix.F_OFD_SETLK, FcntlCommand(thread))
}
