package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// An actor is a process that uses locks as it is told, with the functions of clients/actor.py.
type actor struct{ *shell }

func startActor(t testing.TB, h *hosts.Host, dir string) actor {
	t.Helper()
	clients := ClientPath(t, "")
	a := actor{startPython(t, h, dir)}
	a.must(fmt.Sprintf("sys.path.insert(0, %q); sys.dont_write_bytecode = True; from actor import *", clients))
	return a
}

// says does a step and answers what it printed.
func (a actor) says(step string) string {
	a.t.Helper()
	return strings.TrimSpace(a.must(step))
}

// require does a step that has to print something.
func (a actor) require(step, answer string) {
	a.t.Helper()
	require.Equal(a.t, answer, a.says(step), "%s: %s", a.process.Host().Name(), step)
}

// insists does a step again for as long as the cluster does not answer.
func (a actor) insists(step string) {
	a.t.Helper()
	hosts.Eventually(a.t, step, func() (string, bool) {
		answer := a.says(step)
		require.Contains(a.t, []string{"ok", "ETIMEDOUT"}, answer, step)
		return answer, answer == "ok"
	})
}

// starts begins a step. What it answers waits for what the step prints.
func (a actor) starts(step string) (says func() string) {
	a.t.Helper()
	ended := a.begin(step)
	return func() string {
		a.t.Helper()
		output, err := ended()
		require.NoError(a.t, err)
		return strings.TrimSpace(output)
	}
}
