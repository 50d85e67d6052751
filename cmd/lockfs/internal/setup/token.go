package setup

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"time"

	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
)

// readToken reads the token from the argument or from [cli.JoinTokenVariable]. It returns nil without one.
func readToken(args []string, stdin io.Reader) (*identity.Token, error) {
	given := os.Getenv(cli.JoinTokenVariable)
	if len(args) == 1 {
		given = args[0]
	} else if given == "" {
		return nil, nil
	}
	return cli.ReadToken(given, stdin)
}

// trusts returns a function to report whether a CA is the token's.
func trusts(token *identity.Token) func(*x509.Certificate) bool {
	return func(authority *x509.Certificate) bool { return identity.FingerprintOf(authority) == token.Authority }
}

// printTokens prints the commands for the next hosts.
func printTokens(w io.Writer, tokens []*admin.Token) {
	for _, t := range tokens {
		hosts := "further server"
		if t.Role == identity.Client.String() {
			hosts = "host that only mounts"
		}
		fmt.Fprintf(w, "\nOn each %s (%d at most, until %s):\n\n    lockfs up %s\n", hosts, t.Uses, t.Expires.Format(time.RFC3339), t.Token)
	}
	if len(tokens) > 0 {
		fmt.Fprintln(w, "\nEvery host with a token can join: keep them secret. For more: lockfs token create --role server, or client")
	}
}
