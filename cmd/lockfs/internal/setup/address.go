package setup

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// addressTowards returns this host's address on the route to peer, where peer can reach it unless there is
// NAT between. It sends no packet.
func addressTowards(peer string) (netip.Addr, error) {
	conn, err := net.Dial("udp", peer)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("no route to %s: %w; give the address at which others reach this host with --addr HOST:PORT", peer, err)
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// onlyAddress returns the address at which other hosts reach this one, if there is exactly one.
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
		return netip.Addr{}, errors.New("this host has no address that other hosts can reach: " +
			"configure one, or give --addr 127.0.0.1:7420 for a cluster on this host only")
	case 1:
		return found[0], nil
	}
	words := make([]string, len(found))
	for i, a := range found {
		words[i] = netip.AddrPortFrom(a, defaultPort).String()
	}
	return netip.Addr{}, fmt.Errorf("this host has several addresses; give the one that the other hosts reach: --addr %s",
		strings.Join(words, " or --addr "))
}

// defaultPort is the port of servers.
const defaultPort = 7420
