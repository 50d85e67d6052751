package setup

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// addressTowards is this host's address on the way to another: where that reaches it too, unless addresses are translated in
// between. Nothing is sent.
func addressTowards(peer string) (netip.Addr, error) {
	conn, err := net.Dial("udp", peer)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("no way from here to %s: %w; say where others reach this host with --addr HOST:PORT", peer, err)
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// onlyAddress is the one at which others can reach this host, if there is only one.
func onlyAddress(addresses []net.Addr) (netip.Addr, error) {
	var found []netip.Addr
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			found = append(found, prefix.Addr().Unmap())
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	switch len(found) {
	case 0:
		return netip.Addr{}, errors.New("this host has no address at which others could reach it: " +
			"give it one, or say --addr 127.0.0.1:7420 for a cluster of this host only")
	case 1:
		return found[0], nil
	}
	words := make([]string, len(found))
	for i, a := range found {
		words[i] = netip.AddrPortFrom(a, defaultPort).String()
	}
	return netip.Addr{}, fmt.Errorf("this host has several addresses; say at which the others reach it: --addr %s",
		strings.Join(words, " or --addr "))
}

// defaultPort is where servers listen.
const defaultPort = 7420
