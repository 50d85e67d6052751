package process

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestAPidComesBack has the record of a process that has ended stand for the pid of another one.
func TestAPidComesBack(t *testing.T) {
	before, now := start(t, exec.Command("cat")), start(t, exec.Command("cat"))
	r := newProcTable(8)
	old, s, err := r.find(before.pid())
	require.NoError(t, err)
	require.Equal(t, before.id(), s.ID)
	again, _, err := r.find(before.pid())
	require.NoError(t, err)
	require.Same(t, old, again, "it is read once")
	for _, end := range []func(){before.kill, before.end} {
		end()
		_, _, err = r.find(before.pid())
		require.ErrorIs(t, err, ErrUnknown, "whether it was waited for or not")
		require.Empty(t, r.of)
	}

	ended := start(t, exec.Command("cat"))
	former, _, err := r.find(ended.pid())
	require.NoError(t, err)
	ended.end()
	former.PID = now.pid()
	r.of = map[int]*procEntry{now.pid(): former}
	require.False(t, r.lives(former))
	_, s, err = r.find(now.pid())
	require.NoError(t, err)
	require.Equal(t, now.id(), s.ID)
}

// TestAThreadOfAnotherProcess has what is known of a thread be of one that had its number before.
func TestAThreadOfAnotherProcess(t *testing.T) {
	threads, other := startChild(t, 0, "threads"), startChild(t, 0, "threads")
	thread := threads.numbers()[1]
	other.numbers()
	for range 2 {
		id, err := of(thread)
		require.NoError(t, err)
		require.Equal(t, threads.id(), id)
	}
	process, found := table.processOf(thread)
	require.True(t, found)
	require.Equal(t, threads.pid(), process)
	table.noteThread(thread, other.pid())
	id, err := of(thread)
	require.NoError(t, err)
	require.Equal(t, threads.id(), id)
	threads.end()
	_, err = of(thread)
	require.ErrorIs(t, err, ErrUnknown)
}

func TestAGroupChanges(t *testing.T) {
	p := startChild(t, 0, "regroup")
	p.numbers()
	group := func() int {
		s, err := statOf(p.pid())
		require.NoError(t, err)
		return s.Group
	}
	require.Equal(t, unix.Getpgrp(), group())
	require.Equal(t, []ID{p.id(), idOf(t, os.Getpid())}, slices.Collect(Group(p.pid()))[:2])
	_, err := p.stdin.Write([]byte("now\n"))
	require.NoError(t, err)
	require.Equal(t, []int{p.pid()}, p.numbers())
	require.Equal(t, p.pid(), group())
	require.Equal(t, []ID{p.id()}, slices.Collect(Group(p.pid())))
}

// TestAnAncestorEnds has been asked for before, and is a zombie for a while.
func TestAnAncestorEnds(t *testing.T) {
	script := start(t, exec.Command("sh", "-c", "cat; true"))
	cat := onlyChild(t, script.pid())
	parent := func() ID {
		line, err := Ancestors(cat)
		require.NoError(t, err)
		return line[1].ID
	}
	require.Equal(t, script.id(), parent())
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	defer func() { require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)) }()
	defer func() {
		require.NoError(t, unix.Kill(cat, unix.SIGKILL))
		_, err := unix.Wait4(cat, nil, 0, nil)
		require.NoError(t, err)
	}()
	script.kill()
	require.Equal(t, idOf(t, os.Getpid()), parent())
	_, err := script.Process.Wait()
	require.NoError(t, err)
	require.Equal(t, idOf(t, os.Getpid()), parent())
}

func TestProcTableIsBounded(t *testing.T) {
	const room = 4
	r := newProcTable(room)
	var programs []*program
	for range room + 2 {
		programs = append(programs, start(t, exec.Command("cat")))
	}
	pids := func() (pids []int) {
		for pid := range r.of {
			pids = append(pids, pid)
		}
		return pids
	}
	find := func(p *program) {
		_, s, err := r.find(p.pid())
		require.NoError(t, err)
		require.Equal(t, p.id(), s.ID)
	}
	before := descriptors(t)
	for _, p := range programs[:room] {
		find(p)
	}
	find(programs[0])
	find(programs[room])
	require.ElementsMatch(t, []int{programs[0].pid(), programs[2].pid(), programs[3].pid(), programs[4].pid()}, pids(), "the one asked for longest ago has gone")
	programs[0].end()
	programs[4].end()
	find(programs[5])
	require.ElementsMatch(t, []int{programs[2].pid(), programs[3].pid(), programs[5].pid()}, pids(), "those that have ended go before")
	require.Equal(t, before-2*3+len(r.of), descriptors(t), "two pipes and a pidfd less for each that has ended")
}

// TestCachedFactsAreReadOnce is about namespaces, of which a process and its threads never change theirs.
func TestCachedFactsAreReadOnce(t *testing.T) {
	nested := startChild(t, unix.CLONE_NEWPID, "threads")
	nested.numbers()
	first, err := Namespaces(nested.pid())
	require.NoError(t, err)
	require.Len(t, first, 2)
	first[1] = 0
	again, err := Namespaces(nested.pid())
	require.NoError(t, err)
	own, err := Namespace()
	require.NoError(t, err)
	require.Equal(t, []uint64{first[0], own}, again, "what was answered is the caller's")
	for range 2 {
		inner, err := NamespaceOf(nested.pid())
		require.NoError(t, err)
		require.Equal(t, first[0], inner)
	}
	one, _, err := table.find(nested.pid())
	require.NoError(t, err)
	*one.namespace.Load() = 7
	inner, err := NamespaceOf(nested.pid())
	require.NoError(t, err)
	require.EqualValues(t, 7, inner, "it is not read again")
	nested.end()
	_, err = Namespaces(nested.pid())
	require.ErrorIs(t, err, ErrUnknown)
	_, err = NamespaceOf(nested.pid())
	require.ErrorIs(t, err, ErrUnknown)
}
