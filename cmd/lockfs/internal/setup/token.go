package setup

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/admin"
)

// tokenVariable has a token that is not to be seen on the command line.
const tokenVariable = "LOCKFS_TOKEN"

// mostToken is far above what a token may have, in bytes.
const mostToken = 16 << 10

// readToken reads the token that is given: as an argument, which may name where it is, or in tokenVariable. nil: none is.
func readToken(args []string, stdin io.Reader) (*identity.Token, error) {
	text := os.Getenv(tokenVariable)
	if len(args) == 1 {
		text = args[0]
	}
	switch {
	case text == "" && len(args) == 0:
		return nil, nil
	case text == "-":
		content, err := io.ReadAll(io.LimitReader(stdin, mostToken))
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		text = string(content)
	case strings.HasPrefix(text, "@"):
		file, err := os.Open(text[1:])
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		defer func() { _ = file.Close() }()
		content, err := io.ReadAll(io.LimitReader(file, mostToken))
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		text = string(content)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the token is empty")
	}
	return identity.ParseToken(text)
}

// trusts tells of the authorities of a host which one a token is of.
func trusts(token *identity.Token) func(*x509.Certificate) bool {
	return func(authority *x509.Certificate) bool { return identity.FingerprintOf(authority) == token.Authority }
}

// printTokens says what to type on the hosts that follow.
func printTokens(w io.Writer, tokens []*admin.Token) {
	for _, t := range tokens {
		hosts := "further server"
		if t.Role == identity.Client.String() {
			hosts = "host that only mounts"
		}
		fmt.Fprintf(w, "\nOn each %s (%d at most, until %s):\n\n    lockfs up %s\n", hosts, t.Uses, t.Expires.Format(time.RFC3339), t.Token)
	}
	if len(tokens) > 0 {
		fmt.Fprintln(w, "\nWhoever has one of these can join. More of them: lockfs token create --role server, or client")
	}
}
