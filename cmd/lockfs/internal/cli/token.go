package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"lockfs/cluster/identity"
)

// mostToken is far above what a token may have, in bytes.
const mostToken = 16 << 10

// ReadToken reads a token from where it is given: itself, @FILE, or - for standard input, since all users of a host see its command
// lines. Errors have nothing of it.
func ReadToken(given string, stdin io.Reader) (*identity.Token, error) {
	text := given
	if name, isFile := strings.CutPrefix(given, "@"); isFile || given == "-" {
		from := stdin
		if isFile {
			file, err := os.Open(name)
			if err != nil {
				return nil, fmt.Errorf("read the token: %w", err)
			}
			defer func() { _ = file.Close() }()
			from = file
		}
		content, err := io.ReadAll(io.LimitReader(from, mostToken))
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
