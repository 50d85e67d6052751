package tower_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/tower"
	"lockfs/test/fuzzing"
)

// What parses renders and parses to the same; a heartbeat changes only the time; what does not parse is
// never stale.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(example[:200]))
	f.Add([]byte(strings.Replace(example, `"metadata":{}`, `"metadata":{"a":[1,{"b":null}]},"x":1e999`, 1)))
	f.Add([]byte(`{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		now := time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC)
		l, err := tower.Parse(content)
		if err != nil {
			return
		}
		text, err := l.Render()
		require.NoError(t, err)
		again, err := tower.Parse(text)
		require.NoError(t, err)
		require.True(t, l.CreatedAt.Equal(again.CreatedAt))

		renewed, err := tower.Heartbeat(content, now)
		require.NoError(t, err)
		after, err := tower.Parse(renewed)
		require.NoError(t, err)
		if now.Before(l.CreatedAt) { // a heartbeat is not before its lock
			now = l.CreatedAt
		}
		require.Equal(t, now, after.LastHeartbeatAt)
		after.LastHeartbeatAt = l.LastHeartbeatAt
		require.Equal(t, l, after)
	})
}

func FuzzResolveName(f *testing.F) {
	f.Add("${params.app}-${params.environment}", "money-tracker")
	f.Add("${params.app", "${params.app}")
	fuzzing.Run(f, func(t *testing.T, template, value string) {
		name, err := tower.ResolveName(template, map[string]string{"app": value})
		if err == nil {
			require.NoError(t, tower.ValidateName(name))
		}
	})
}
