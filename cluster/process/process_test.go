package process

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestOf(t *testing.T) {
	self, err := of(unix.Gettid())
	require.NoError(t, err)
	require.Equal(t, idOf(t, os.Getpid()), self)

	cat := start(t, exec.Command("cat"))
	id, err := of(cat.pid())
	require.NoError(t, err)
	require.Equal(t, cat.id(), id)

	threads := startChild(t, 0, "threads")
	numbers := threads.numbers()
	require.NotEqual(t, numbers[0], numbers[1])
	id, err = of(numbers[1])
	require.NoError(t, err)
	require.Equal(t, threads.id(), id)
}

func TestOfUnknown(t *testing.T) {
	ended := start(t, exec.Command("cat"))
	ended.end()
	for _, thread := range []int{0, -1, ended.pid(), 1<<32 + os.Getpid()} {
		_, err := of(thread)
		require.ErrorIs(t, err, ErrUnknown, "%d", thread)
	}
}

// TestLeaderless is about a process that goes on after its main thread.
func TestLeaderless(t *testing.T) {
	p := startChild(t, 0, "leaderless")
	thread := p.numbers()[1]
	require.True(t, zombie(p.pid()))
	id, err := of(thread)
	require.NoError(t, err)
	assert.Equal(t, p.id(), id)
	assert.True(t, Alive(id))
	found, err := Find(os.Getpid(), p.pid())
	assert.NoError(t, err)
	assert.Equal(t, id, found)
	p.kill()
	assert.False(t, Alive(id))
}

func TestNameWithParentheses(t *testing.T) {
	for _, name := range []string{") (", ") R 1 1 (", "a b", "))))", "x\ny) S 1"} {
		named := startChild(t, 0, "named", name)
		named.numbers()
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", named.pid()))
		require.NoError(t, err)
		require.Equal(t, name+"\n", string(comm))
		lineage, err := Ancestors(named.pid())
		require.NoError(t, err)
		require.Equal(t, named.id(), lineage[0].ID)
		require.Equal(t, unix.Getpgrp(), lineage[0].Group)
		require.Equal(t, os.Getpid(), lineage[1].PID)
	}
}

func TestAlive(t *testing.T) {
	cat := start(t, exec.Command("cat"))
	id := cat.id()
	require.True(t, Alive(id))
	require.False(t, Alive(ID{id.PID, id.Start + 1}), "another process has its pid now")
	require.False(t, Alive(ID{id.PID, id.Start - 1}))
	cat.kill()
	require.True(t, zombie(id.PID))
	require.False(t, Alive(id))
	cat.end()
	require.False(t, Alive(id))
}

// TestAliveWhenItCannotBeTold has no descriptor left to look with.
func TestAliveWhenItCannotBeTold(t *testing.T) {
	cat := start(t, exec.Command("cat"))
	former := ID{cat.pid(), cat.id().Start - 1}
	withoutDescriptors(t, func() {
		require.True(t, Alive(former))
		_, err := Find(os.Getpid(), cat.pid())
		require.ErrorIs(t, err, unix.EMFILE)
		require.NotErrorIs(t, err, ErrUnknown)
	})
	require.False(t, Alive(former))
	require.True(t, Alive(ID{}))
}

// withoutDescriptors does something while no file can be opened.
func withoutDescriptors(t *testing.T, do func()) {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	none := limit
	none.Cur = 0
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	do()
}

// TestExecByAnotherThread is about a thread that gets the place of the main thread: its process stays the
// same.
func TestExecByAnotherThread(t *testing.T) {
	p := startChild(t, 0, "exec")
	id := p.id()
	thread := p.numbers()[1]
	before, err := of(thread)
	require.NoError(t, err)
	require.Equal(t, id, before)
	_, err = p.stdin.Write([]byte("now\n"))
	require.NoError(t, err)
	require.Equal(t, []int{1}, p.numbers())
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid()))
	require.NoError(t, err)
	require.Equal(t, "sh\n", string(comm))
	require.True(t, Alive(id))
	require.Equal(t, id, p.id())
}

func TestParseStatDamaged(t *testing.T) {
	for _, line := range []string{"", "1", "1 (init)", "1 (init) S 0 1 1", "1 (init) S x 1 1", "no parentheses"} {
		_, err := parseStat([]byte(line))
		require.Error(t, err, line)
	}
}

func TestNoDescriptorLeaks(t *testing.T) {
	cat := start(t, exec.Command("cat"))
	nested := startChild(t, unix.CLONE_NEWPID|unix.CLONE_NEWUTS, "hostname", "elsewhere")
	nested.numbers()
	ended := start(t, exec.Command("cat"))
	ended.kill()
	before := 0
	for i := range 20 {
		if i == 1 {
			before = descriptors(t) // with those of what is remembered
		}
		_, _ = of(cat.pid())
		_, _ = Ancestors(cat.pid())
		Alive(ID{cat.pid(), 1})
		for _, pid := range []int{cat.pid(), ended.pid(), 1, 2, 0} {
			_, _ = Find(cat.pid(), pid)
			_, _ = Find(nested.pid(), pid)
			_, _ = FindRelative(nested.pid(), pid)
			_, _ = Namespaces(pid)
		}
		_, _ = Hostname(nested.pid())
		_, _ = Hostname(ended.pid())
		_, _ = Namespace()
		_, _ = Namespaces(nested.pid())
	}
	require.Equal(t, before, descriptors(t))
}
