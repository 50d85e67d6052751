package admin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestCheckRule(t *testing.T) {
	require.NoError(t, checkRule(&storepb.Rule{Pattern: "*.lock", Guard: "host"}))
	require.NoError(t, checkRule(&storepb.Rule{Pattern: "*.lock", StaleAfter: 1}))
	require.NoError(t, checkRule(&storepb.Rule{Pattern: "*.lock", Holder: "creator"}))
	require.NoError(t, checkRule(&storepb.Rule{Pattern: "*.lock", Format: "data"}))
	for problem, r := range map[string]*storepb.Rule{
		"the rule has no setting":      {Pattern: "*.lock"},
		"not valid UTF-8":              {Pattern: "\xff", Guard: "host"},
		"two slashes":                  {Pattern: "a//b", Guard: "host"},
		`"owner" is neither host`:      {Pattern: "a", Guard: "owner"},
		"stale-after: must not be":     {Pattern: "a", StaleAfter: -1},
		"host-timeout: must not be":    {Pattern: "a", HostTimeout: -1},
		`"tower2" is none of [tower`:   {Pattern: "a", Format: "tower2"},
		`"delete" is neither keep nor`: {Pattern: "a", OnStale: "delete"},
		`"me" is not creator`:          {Pattern: "a", Holder: "me"},
		"can have no other setting":    {Pattern: "a", Format: "data", Holder: "creator"},
	} {
		require.ErrorContains(t, checkRule(r), problem)
	}
}

func TestUselessOptions(t *testing.T) {
	for format, want := range map[string][]string{
		"":          nil,
		"semaphore": {"--host-timeout"},
		"none":      {"--host-timeout"},
		"pid":       {"--stale-after"},
		"beads":     {"--stale-after"},
		"tower":     {"--stale-after", "--host-timeout"},
	} {
		require.Equal(t, want, uselessOptions(&storepb.Rule{Format: format, StaleAfter: 1, HostTimeout: 1}), format)
		require.Empty(t, uselessOptions(&storepb.Rule{Format: format}), format)
		require.NotContains(t, uselessOptions(&storepb.Rule{Format: format, Holder: "creator", HostTimeout: 1}), "--host-timeout")
	}
}

func TestHasRule(t *testing.T) {
	rules := []*storepb.Rule{{Pattern: "*.lock"}, {Pattern: "a b"}}
	require.NoError(t, hasRule(rules, "a b"))
	require.EqualError(t, hasRule(rules, "*.lck"), `rule *.lck does not exist; the rules are: *.lock  "a b"`)
	require.EqualError(t, hasRule(nil, ""), "rule \"\" does not exist, and there are no others; create one with `lockfs rule set`")
}

func TestPrintRules(t *testing.T) {
	var b strings.Builder
	require.NoError(t, printRules(&b, []*storepb.Rule{
		{Pattern: "*.lock", StaleAfter: int64(10 * time.Minute), OnStale: "remove"},
		{Pattern: "*.lck", Holder: "creator"},
		{Pattern: "\x1b/**", Format: "none", Guard: "host", HostTimeout: int64(time.Second)},
	}))
	require.Equal(t, strings.TrimPrefix(`
PATTERN    HOLDER   FORMAT  STALE AFTER  ON STALE  GUARD  HOST TIMEOUT
*.lock     -        -       10m          remove    -      -
*.lck      creator  -       -            -         -      -
"\x1b/**"  -        none    -            -         host   1s
`, "\n"), b.String())
}

func TestRuleAsJSON(t *testing.T) {
	described, err := json.Marshal(describeRule(&storepb.Rule{Pattern: "*.lock", Holder: "creator", HostTimeout: int64(time.Minute)}))
	require.NoError(t, err)
	require.JSONEq(t, `{"pattern":"*.lock","holder":"creator","host_timeout_seconds":60}`, string(described))
}
