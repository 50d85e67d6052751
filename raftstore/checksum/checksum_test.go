package checksum

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOf has the check value that catalogues give for CRC-32C: files of released versions are read by it.
func TestOf(t *testing.T) {
	require.Equal(t, uint32(0xE3069283), Of([]byte("123456789")))
}
