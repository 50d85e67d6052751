package identity

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// echoing answers whatever comes over a connection to the address.
func echoing(b *testing.B, listener net.Listener) string {
	b.Helper()
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}) // not spliced by the kernel
			}()
		}
	}()
	return listener.Addr().String()
}

// secured is an echo over TLS, and how to dial it.
func secured(b *testing.B) (string, *tls.Config) {
	b.Helper()
	authority := newAuthority(b)
	server, client := host(b, authority, Server, "s1", now), host(b, authority, Client, "m1", now)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.ServerConfig(stateOf(now, authority).admit(client), allProtocols...))
	require.NoError(b, err)
	return echoing(b, listener), client.ClientConfig(client.Verifier(nil), ProtocolRPC)
}

// Both sides' work of one connection with both certificates, from dialing to the first answer.
func BenchmarkHandshake(b *testing.B) {
	address, config := secured(b)
	for b.Loop() {
		conn, err := tls.Dial("tcp", address, config)
		require.NoError(b, err)
		roundTrip(b, conn, make([]byte, 1))
		conn.Close()
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	b.Run("TCP", func(b *testing.B) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		conn, err := net.Dial("tcp", echoing(b, listener))
		require.NoError(b, err)
		defer conn.Close()
		for message := make([]byte, 200); b.Loop(); {
			roundTrip(b, conn, message)
		}
	})
	b.Run("TLS", func(b *testing.B) {
		address, config := secured(b)
		conn, err := tls.Dial("tcp", address, config)
		require.NoError(b, err)
		defer conn.Close()
		for message := make([]byte, 200); b.Loop(); {
			roundTrip(b, conn, message)
		}
	})
}

func roundTrip(b *testing.B, conn net.Conn, message []byte) {
	if _, err := conn.Write(message); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(conn, message); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkIssue(b *testing.B) {
	authority := newAuthority(b)
	der, err := newKey(b).Request(Name{Client, "m1"})
	require.NoError(b, err)
	for b.Loop() {
		request, err := ParseRequest(der)
		require.NoError(b, err)
		_, err = authority.Issue(request, now, Validity)
		require.NoError(b, err)
	}
}
