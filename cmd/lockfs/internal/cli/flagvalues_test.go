package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "4096": 4096, "3K": 3 << 10, "512M": 512 << 20, "2GiB": 2 << 30, "1TB": 1 << 40,
	} {
		var got uint64
		require.NoError(t, Size(&got).Set(text), text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "G", "-1", "1.5G", "2X", "9999999999T", "1 G"} {
		require.Error(t, Size(new(uint64)).Set(text), text)
	}
	for size, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1 << 10: "1.0 KiB", 3 << 29: "1.5 GiB", 1 << 52: "4096.0 TiB"} {
		require.Equal(t, want, SizeText(size))
	}
}
