package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"lockfs/cluster/identity"
)

// mostToken is an upper bound for the size of a token in bytes.
const mostToken = 16 << 10

// ReadToken reads a token from its argument: the token itself, @FILE, or - for standard input. Files and
// standard input keep it off the command line, which all users see. Errors do not contain it.
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

var tokenCommands = []string{"mount", "server", "up"}

// HideToken restarts this program without the join token on its command line, which every user of the host
// can read. The new process gets the token in its environment, which only its user and root can read. It
// returns if there is no token on the command line, or if the restart fails.
func HideToken() error {
	rest, token := withoutToken(os.Args)
	if token == "" {
		return nil
	}
	if err := os.Setenv(JoinTokenVariable, token); err != nil {
		return err
	}
	if err := syscall.Exec("/proc/self/exe", rest, os.Environ()); err != nil {
		return fmt.Errorf("restart without the token on the command line: %w", err)
	}
	return nil
}

// withoutToken returns the arguments of this program without the join token, and the token, if any.
func withoutToken(args []string) (rest []string, token string) {
	if len(args) < 2 || !slices.Contains(tokenCommands, args[1]) {
		return args, ""
	}
	for i := 2; i < len(args) && token == ""; i++ {
		given, isFlag := strings.CutPrefix(args[i], "--token=")
		if !identity.IsToken(given) {
			continue
		}
		token, rest = given, slices.Concat(args[:i], args[i+1:])
		if !isFlag && args[i-1] == "--token" {
			rest = slices.Concat(args[:i-1], args[i+1:])
		}
	}
	if token == "" {
		return args, ""
	}
	return rest, token
}
