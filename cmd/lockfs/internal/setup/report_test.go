package setup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStepsAreTold(t *testing.T) {
	var b strings.Builder
	r := &report{w: &b}
	r.title("%s", "a, a server")
	r.is("settings", "%s", "file")
	require.False(t, r.changed)
	r.did("daemon", "started")
	require.True(t, r.changed)
	r.waits("for nothing")()
	require.Equal(t, "lockfs: a, a server\n  settings  file\n  daemon    started\n", b.String())
}
