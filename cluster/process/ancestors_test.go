package process

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAncestors(t *testing.T) {
	// A script in a process group of its own, and a command of it.
	command := exec.Command("sh", "-c", "cat; true")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	script := start(t, command)
	cat := onlyChild(t, script.pid())

	lineage, err := Ancestors(cat)
	require.NoError(t, err)
	require.Equal(t, []Relative{
		{idOf(t, cat), script.pid()}, {script.id(), script.pid()}, {idOf(t, os.Getpid()), unix.Getpgrp()},
	}, lineage[:3])
	require.Equal(t, os.Getppid(), lineage[3].PID)
	require.Equal(t, 1, lineage[len(lineage)-1].PID)
	require.Equal(t, []ID{idOf(t, cat), script.id()}, slices.Collect(sameGroup(slices.Values(lineage))))
}

func TestAncestorsOfAThread(t *testing.T) {
	p := startChild(t, 0, "threads")
	lineage, err := Ancestors(p.numbers()[1])
	require.NoError(t, err)
	require.Equal(t, p.id(), lineage[0].ID)
	require.Equal(t, os.Getpid(), lineage[1].PID)
}

func TestAncestorsUnknown(t *testing.T) {
	ended := start(t, exec.Command("cat"))
	ended.end()
	for _, thread := range []int{0, ended.pid()} {
		_, err := Ancestors(thread)
		require.ErrorIs(t, err, ErrUnknown)
	}
}

// TestParentEnds is about a parent that ends after a lineage has found its pid.
func TestParentEnds(t *testing.T) {
	script := start(t, exec.Command("sh", "-c", "cat; true"))
	cat := onlyChild(t, script.pid())
	before, err := statOf(cat)
	require.NoError(t, err)
	require.Equal(t, script.pid(), before.ppid)

	var younger ID // now has the pid that was found
	eventually(t, func() bool {
		younger = start(t, exec.Command("cat")).id()
		return younger.Start > before.Start
	})
	confused := before
	confused.ppid = younger.PID
	parent, ok := confused.readParent()
	require.True(t, ok)
	require.Equal(t, script.id(), parent.ID)

	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	defer func() { require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)) }()
	require.NoError(t, script.Process.Kill())
	_, err = script.Process.Wait()
	require.NoError(t, err)
	parent, ok = before.readParent()
	require.True(t, ok)
	require.Equal(t, idOf(t, os.Getpid()), parent.ID)

	require.NoError(t, unix.Kill(cat, unix.SIGKILL))
	_, err = unix.Wait4(cat, nil, 0, nil)
	require.NoError(t, err)
	_, ok = before.readParent()
	require.False(t, ok, "it has ended itself")
}

func TestAncestorsAreBounded(t *testing.T) {
	const script = `[ "$1" = 0 ] && echo $$ && exec cat; sh -c "$0" "$0" $(($1-1)); true`
	p := start(t, exec.Command("sh", "-c", script, script, "70"))
	lineage, err := Ancestors(p.numbers()[0])
	require.NoError(t, err)
	require.Len(t, lineage, maxAncestors)
}

func TestSameGroup(t *testing.T) {
	a, b, c := ID{3, 30}, ID{2, 20}, ID{1, 10}
	require.Empty(t, slices.Collect(sameGroup(slices.Values([]Relative(nil)))))
	require.Equal(t, []ID{a}, slices.Collect(sameGroup(slices.Values([]Relative{{a, 3}}))))
	require.Equal(t, []ID{a, b}, slices.Collect(sameGroup(slices.Values([]Relative{{a, 2}, {b, 2}, {c, 1}}))))
	require.Equal(t, []ID{a}, slices.Collect(sameGroup(slices.Values([]Relative{{a, 3}, {b, 2}, {c, 3}}))), "nearest ancestors only")
	require.Equal(t, []ID{a}, slices.Collect(sameGroup(slices.Values([]Relative{{a, 0}, {b, 0}}))), "groups that cannot be seen")
}
