package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

func TestWhereATokenMayBe(t *testing.T) {
	text, err := identity.NewToken(identity.Client, []string{"10.0.0.1:7420"}, identity.Fingerprint{1}, time.Unix(1e9, 0)).Text()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o600))

	for what, given := range map[string]struct {
		args            []string
		stdin, variable string
	}{
		"an argument":            {args: []string{text}},
		"a file":                 {args: []string{"@" + file}},
		"the input":              {args: []string{"-"}, stdin: text + "\n"},
		"a variable":             {variable: text},
		"the file in a variable": {variable: "@" + file},
		"an argument counts":     {args: []string{text}, variable: "nonsense"},
	} {
		t.Setenv(cli.JoinTokenVariable, given.variable)
		token, err := readToken(given.args, strings.NewReader(given.stdin))
		require.NoError(t, err, what)
		require.Equal(t, []string{"10.0.0.1:7420"}, token.Addresses, what)
	}
	t.Setenv(cli.JoinTokenVariable, "")
	t.Setenv("LOCKFS_TOKEN", "42") // the fencing token of the lock that `lockfs run -- lockfs up` runs under
	token, err := readToken(nil, strings.NewReader(""))
	require.NoError(t, err)
	require.Nil(t, token, "none is given")
	for _, wrong := range []string{"-", "", "@" + file + ".gone", text[:len(text)-3], "nonsense"} {
		_, err := readToken([]string{wrong}, strings.NewReader(" \n"))
		require.Error(t, err, wrong)
		require.NotContains(t, err.Error(), text[:40], "of a secret nothing is shown")
	}
}
