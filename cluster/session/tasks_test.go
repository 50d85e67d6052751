package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTasks(t *testing.T) {
	var some tasks
	goOn := make(chan struct{})
	var done bool
	some.begin(func() {
		<-goOn
		done = true
	})
	go close(goOn)
	some.end()
	require.True(t, done)
	some.begin(func() { t.Error("it has ended") })
	some.end()
}
