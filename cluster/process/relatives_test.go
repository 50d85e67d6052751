package process

import (
	"math"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFindRelative(t *testing.T) {
	// The script has a process group of its own, which does not matter.
	command := exec.Command("sh", "-c", "sleep 1000 <&- >&- & echo $!; cat; true")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	script := start(t, command)
	sleep := script.numbers()[0]
	defer func() { require.NoError(t, unix.Kill(sleep, unix.SIGKILL)) }()
	var cat int
	eventually(t, func() bool {
		ofScript := Children(script.pid())
		cat = ofScript[len(ofScript)-1]
		return cat != sleep
	})
	threads := startChild(t, 0, "threads")
	thread := threads.numbers()[1]
	self := os.Getpid()

	for _, row := range []struct {
		caller, pid int
		why         string
	}{
		{script.pid(), script.pid(), "itself"},
		{unix.Gettid(), self, "itself"},
		{thread, threads.pid(), "the process of the thread"},
		{1, 1, "itself, as init"},
		{cat, script.pid(), "its parent"},
		{cat, self, "its parent's parent"},
		{thread, self, "its process's parent"},
		{script.pid(), sleep, "its child"},
		{self, sleep, "its child's child"},
	} {
		found, err := FindRelative(row.caller, row.pid)
		require.NoError(t, err, "%v", row)
		require.Equal(t, idOf(t, row.pid), found, "%v", row)
	}
	for _, row := range []struct {
		caller, pid int
		why         string
	}{
		{cat, sleep, "a sibling"},
		{cat, threads.pid(), "its parent's sibling"},
		{thread, script.pid(), "a sibling"},
		{self, 1, "everybody's ancestor"},
		{cat, 1, "everybody's ancestor"},
		{threads.pid(), thread, "no process"},
		{0, self, "a caller that cannot be seen"},
		{self, 0, "no pid"},
	} {
		_, err := FindRelative(row.caller, row.pid)
		require.ErrorIs(t, err, ErrUnknown, "%v", row)
		if row.why == "a sibling" {
			_, err = Find(row.caller, row.pid)
			require.NoError(t, err)
		}
	}
}

func TestFindRelativeEnded(t *testing.T) {
	child := start(t, exec.Command("cat"))
	child.kill()
	_, err := FindRelative(os.Getpid(), child.pid())
	require.ErrorIs(t, err, ErrUnknown)
	_, err = FindRelative(child.pid(), os.Getpid())
	require.NoError(t, err, "a zombie has a family still")
	child.end()
	_, err = FindRelative(child.pid(), os.Getpid())
	require.ErrorIs(t, err, ErrUnknown)
}

// TestFindRelativeNested has one namespace in another, whose first processes have other pids outside.
func TestFindRelativeNested(t *testing.T) {
	outer := startChild(t, unix.CLONE_NEWPID, "nest", "pair")
	innerPID := outer.numbers()[0]
	middle := onlyChild(t, outer.pid())
	inner := onlyChild(t, middle)
	for _, row := range []struct{ caller, pid, means int }{
		{outer.pid(), 1, outer.pid()},
		{middle, 1, middle},
		{inner, innerPID, inner},
		{outer.pid(), nestedPID(t, middle), middle},
		{outer.pid(), nestedPID(t, inner), inner},
		{middle, innerPID, inner},
		{os.Getpid(), inner, inner},
	} {
		found, err := FindRelative(row.caller, row.pid)
		require.NoError(t, err, "%v", row)
		require.Equal(t, idOf(t, row.means), found, "%v", row)
	}
	_, err := FindRelative(inner, 1)
	require.ErrorIs(t, err, ErrUnknown, "the first process of its namespace is everybody's ancestor there")
	_, err = FindRelative(inner, math.MaxInt32)
	require.ErrorIs(t, err, ErrUnknown)
	beside := startChild(t, unix.CLONE_NEWPID, "wait")
	beside.numbers()
	_, err = FindRelative(beside.pid(), innerPID)
	require.ErrorIs(t, err, ErrUnknown, "a pid of another namespace")
}

// TestFindRelativeBesideAContainer has two processes of one container, of which neither descends from the
// other.
func TestFindRelativeBesideAContainer(t *testing.T) {
	shell := start(t, exec.Command("unshare", "-p", "-f", "--mount-proc", "--kill-child",
		"sh", "-c", "sleep 1000 <&- & echo $!; cat; true"))
	pid := shell.numbers()[0]
	script := onlyChild(t, shell.pid())
	var cat int
	eventually(t, func() bool {
		ofScript := Children(script)
		cat = ofScript[len(ofScript)-1]
		return len(ofScript) == 2
	})
	found, err := FindRelative(script, pid)
	require.NoError(t, err)
	byAnybody, err := Find(cat, pid)
	require.NoError(t, err)
	require.Equal(t, found, byAnybody)
	_, err = FindRelative(cat, pid)
	require.ErrorIs(t, err, ErrUnknown)
}

// nestedPID is a process's pid in the first namespace below ours.
func nestedPID(t *testing.T, process int) int {
	t.Helper()
	pids, err := readPIDs(process)
	require.NoError(t, err)
	return pids[1]
}

// TestIsRelative of itself, of ancestors and descendants, and of nobody else; not of process 1, nor of
// one that has ended.
func TestIsRelative(t *testing.T) {
	self := os.Getpid()
	child, sibling := startChild(t, 0, "threads"), start(t, exec.Command("cat"))
	thread := child.numbers()[1]
	of := func(pid int) ID { return idOf(t, pid) }
	for _, pair := range [][2]int{{self, self}, {self, child.pid()}, {thread, self}, {thread, child.pid()}, {sibling.pid(), os.Getppid()}} {
		require.True(t, IsRelative(pair[0], of(pair[1])), "%v", pair)
	}
	for _, pair := range [][2]int{{child.pid(), sibling.pid()}, {self, 1}, {0, self}} {
		require.False(t, IsRelative(pair[0], of(pair[1])), "%v", pair)
	}
	former := of(self)
	former.Start--
	require.False(t, IsRelative(self, former), "an earlier process with its pid")
	ended := of(sibling.pid())
	sibling.kill()
	require.False(t, IsRelative(self, ended))
}
