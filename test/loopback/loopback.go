// Package loopback gives tests addresses on which they start servers.
package loopback

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var given atomic.Uint32

// Free returns a port on a loopback address. No other test has it, nor any connection in progress, so it
// stays free.
func Free(t testing.TB) string {
	t.Helper()
	for {
		n := given.Add(1)
		address := fmt.Sprintf("127.%d.%d.%d:%d", 1+os.Getpid()%250, n/250, 1+n%250, 10000+(os.Getpid()+int(n))%20000)
		listener, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		return address
	}
}
