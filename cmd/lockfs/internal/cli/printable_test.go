package cli

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostile has names that a terminal or a shell would obey.
var hostile = []string{
	"", "a", "a b", "$(reboot)", "`reboot`", "it's", "-f", "~", "*", "a;b", "a\nb", "\x1b[2J", "\u009b2J", "a\u202eb", "\xff\xfe", `\`, "ü", "a\\\x1b'b", "!x", "#x",
}

// TestShellWordIsReadBackByShells by bash whatever the name is, and by dash if nothing had to be escaped.
func TestShellWordIsReadBackByShells(t *testing.T) {
	for _, name := range hostile {
		word := ShellWord(name)
		require.Equal(t, word, Text(word), "a terminal obeys nothing of it")
		shells := []string{"bash"}
		if Text(name) == name {
			shells = append(shells, "dash")
		}
		for _, shell := range shells {
			read, err := exec.Command(shell, "-c", "printf %s "+word).Output()
			require.NoError(t, err)
			require.Equal(t, name, string(read), word)
		}
	}
	require.Equal(t, "/locks/deploy.lock", ShellWord("/locks/deploy.lock"))
}

// TestNothingPrintedIsObeyedByATerminal of the names that others chose, in JSON and in errors.
func TestNothingPrintedIsObeyedByATerminal(t *testing.T) {
	for _, name := range hostile {
		for _, print := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return PrintJSON(b, map[string]string{"path": name}) },
			func(b *bytes.Buffer) error { return PrintJSONLine(b, []string{name}) },
			func(b *bytes.Buffer) error {
				require.Equal(t, 1, Report(b, "lockfs", errors.New("remove "+name+": no")))
				return nil
			},
		} {
			var out bytes.Buffer
			require.NoError(t, print(&out))
			for _, r := range bytes.ReplaceAll(out.Bytes(), []byte("\n"), nil) {
				require.NotContains(t, []byte{0x1b, 0x9b, 0xff}, r, out.String())
			}
			require.NotContains(t, out.String(), "\u202e")
			require.NotContains(t, out.String(), "\u009b")
		}
	}
}
