package setup

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyAddress(t *testing.T) {
	addresses := func(all ...string) (list []net.Addr) {
		for _, text := range all {
			ip, of, err := net.ParseCIDR(text)
			require.NoError(t, err)
			list = append(list, &net.IPNet{IP: ip, Mask: of.Mask})
		}
		return list
	}
	found, err := onlyAddress(addresses("127.0.0.1/8", "::1/128", "fe80::1/64", "169.254.1.1/16", "10.0.0.1/24", "10.0.0.1/32"))
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1", found.String())

	_, err = onlyAddress(addresses("127.0.0.1/8", "fe80::1/64"))
	require.ErrorContains(t, err, "--addr 127.0.0.1:7420")
	_, err = onlyAddress(addresses("2001:db8::1/64", "10.0.0.1/24"))
	require.ErrorContains(t, err, "--addr 10.0.0.1:7420 or --addr [2001:db8::1]:7420")
}

func TestAddressTowards(t *testing.T) {
	found, err := addressTowards("127.0.0.1:7420")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", found.String())
	_, err = addressTowards("no port")
	require.ErrorContains(t, err, "--addr")
}
