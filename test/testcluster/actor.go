package testcluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// An Actor is a process that uses locks step by step, with the functions of clients/actor.py.
type Actor struct{ *Shell }

// StartActor starts an actor in a directory.
func StartActor(t testing.TB, h *hosts.Host, dir string) Actor {
	t.Helper()
	clients := ClientPath(t, "")
	a := Actor{StartPython(t, h, dir)}
	a.Must(fmt.Sprintf("sys.path.insert(0, %q); sys.dont_write_bytecode = True; from actor import *", clients))
	return a
}

// Says runs a step and returns its output.
func (a Actor) Says(step string) string {
	a.t.Helper()
	return strings.TrimSpace(a.Must(step))
}

// Require runs a step and requires an output.
func (a Actor) Require(step, answer string) {
	a.t.Helper()
	require.Equal(a.t, answer, a.Says(step), "%s: %s", a.Process.Host().Name(), step)
}

// Insists repeats a step while the cluster does not answer.
func (a Actor) Insists(step string) {
	a.t.Helper()
	hosts.Eventually(a.t, step, func() (string, bool) {
		answer := a.Says(step)
		require.Contains(a.t, []string{"ok", "ETIMEDOUT"}, answer, step)
		return answer, answer == "ok"
	})
}

// Starts begins a step. The caller calls says to wait for its output.
func (a Actor) Starts(step string) (says func() string) {
	a.t.Helper()
	ended := a.Begin(step)
	return func() string {
		a.t.Helper()
		output, err := ended()
		require.NoError(a.t, err)
		return strings.TrimSpace(output)
	}
}
