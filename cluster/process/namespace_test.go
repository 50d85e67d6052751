package process

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestNamespace(t *testing.T) {
	link, err := os.Readlink("/proc/self/ns/pid")
	require.NoError(t, err)
	own, err := Namespace()
	require.NoError(t, err)
	require.Equal(t, link, "pid:["+strconv.Itoa(int(own))+"]")
}

// TestNamespaces looks from the host into a namespace, and one in that.
func TestNamespaces(t *testing.T) {
	own, err := Namespace()
	require.NoError(t, err)
	thread := startChild(t, 0, "threads").numbers()[1]
	outer := startChild(t, unix.CLONE_NEWPID, "nest", "pair")
	outer.numbers()
	middle := onlyChild(t, outer.pid())
	inner := onlyChild(t, middle)
	for _, row := range []struct {
		thread int
		in     []uint64
	}{
		{unix.Gettid(), []uint64{own}},
		{thread, []uint64{own}},
		{outer.pid(), []uint64{inode(t, outer.pid()), own}},
		{middle, []uint64{inode(t, middle), inode(t, outer.pid()), own}},
		{inner, []uint64{inode(t, middle), inode(t, outer.pid()), own}},
	} {
		in, err := Namespaces(row.thread)
		require.NoError(t, err)
		require.Equal(t, row.in, in)
		first, err := NamespaceOf(row.thread)
		require.NoError(t, err)
		require.Equal(t, row.in[0], first)
	}
}

func TestNamespacesUnknown(t *testing.T) {
	ended := start(t, exec.Command("cat"))
	ended.end()
	for _, thread := range []int{0, -1, ended.pid()} {
		_, err := Namespaces(thread)
		require.ErrorIs(t, err, ErrUnknown)
		_, err = NamespaceOf(thread)
		require.ErrorIs(t, err, ErrUnknown)
	}
}

// TestNamespacesFromInside is asked in a namespace with a /proc of its own, where what is outside cannot
// be seen.
func TestNamespacesFromInside(t *testing.T) {
	command := exec.Command("unshare", "-p", "-f", "--mount-proc", "--kill-child", os.Args[0])
	command.Env = append(os.Environ(), childEnv+"=namespaces")
	p := start(t, command)
	numbers := p.numbers()
	require.Equal(t, []int{int(inode(t, onlyChild(t, p.pid())))}, numbers)
}

// TestNamespaceOfAnotherProc is in a pid namespace with the /proc of the one outside.
func TestNamespaceOfAnotherProc(t *testing.T) {
	p := startChild(t, unix.CLONE_NEWPID, "namespace")
	line, err := p.stdout.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "true true\n", line)
}

func TestFind(t *testing.T) {
	cat := start(t, exec.Command("cat"))
	threads := startChild(t, 0, "threads")
	thread := threads.numbers()[1]
	for _, caller := range []int{unix.Gettid(), cat.pid(), thread} {
		found, err := Find(caller, cat.pid())
		require.NoError(t, err)
		require.Equal(t, cat.id(), found)
	}
}

func TestFindUnknown(t *testing.T) {
	self := os.Getpid()
	killed, ended := start(t, exec.Command("cat")), start(t, exec.Command("cat"))
	killed.kill()
	require.True(t, zombie(killed.pid()))
	ended.end()
	thread := startChild(t, 0, "threads").numbers()[1]
	nested := startChild(t, unix.CLONE_NEWPID, "wait")
	nested.numbers()
	for _, row := range []struct {
		caller, pid int
		why         string
	}{
		{self, killed.pid(), "a zombie"},
		{self, ended.pid(), "ended"},
		{self, thread, "a thread"},
		{self, 0, "no pid"},
		{self, -1, "no pid"},
		{self, 1<<32 + self, "no pid"},
		{self, math.MaxInt, "no pid"},
		{0, self, "a caller that cannot be seen"},
		{ended.pid(), self, "a caller that has ended"},
		{nested.pid(), 0, "no pid"},
		{nested.pid(), nested.pid(), "a pid of another namespace"},
		{nested.pid(), math.MaxInt32, "no process of the namespace"},
	} {
		_, err := Find(row.caller, row.pid)
		require.ErrorIs(t, err, ErrUnknown, "%v", row)
	}
}

// TestFindNested looks from the host into a namespace, and one in that. A process that is the first of its
// namespace there has another pid outside.
func TestFindNested(t *testing.T) {
	outer := startChild(t, unix.CLONE_NEWPID, "nest", "pair")
	innerPID := outer.numbers()[0]
	require.NotEqual(t, 1, innerPID)
	middle := onlyChild(t, outer.pid())
	inner := onlyChild(t, middle)
	inOuter := func(pid int) int {
		pids, err := readPIDs(pid)
		require.NoError(t, err)
		require.Len(t, pids, 3)
		return pids[1]
	}
	for _, row := range []struct{ caller, pid, means int }{
		{outer.pid(), 1, outer.pid()},
		{outer.pid(), inOuter(middle), middle},
		{outer.pid(), inOuter(inner), inner},
		{middle, 1, middle},
		{middle, innerPID, inner},
		{inner, 1, middle},
		{inner, innerPID, inner},
		{os.Getpid(), inner, inner},
	} {
		found, err := Find(row.caller, row.pid)
		require.NoError(t, err, "%v", row)
		require.Equal(t, idOf(t, row.means), found, "%v", row)
	}
}

// TestFindBeside has two namespaces with the same pids.
func TestFindBeside(t *testing.T) {
	one, other := startChild(t, unix.CLONE_NEWPID, "wait"), startChild(t, unix.CLONE_NEWPID, "wait")
	for _, p := range []*program{one, other} {
		require.Equal(t, []int{1}, p.numbers())
		found, err := Find(p.pid(), 1)
		require.NoError(t, err)
		require.Equal(t, p.id(), found)
	}
	require.True(t, isCalled(one.pid(), 1, inode(t, one.pid())))
	require.False(t, isCalled(one.pid(), 1, inode(t, other.pid())))
	require.False(t, isCalled(os.Getpid(), os.Getpid(), inode(t, one.pid())))
}

func inode(t *testing.T, pid int) uint64 {
	t.Helper()
	namespace, err := openNamespace(pid, "pid")
	require.NoError(t, err)
	require.NoError(t, unix.Close(namespace.fd))
	return namespace.inode
}

// TestFindNestedEnded is about a child in a namespace, killed and not waited for.
func TestFindNestedEnded(t *testing.T) {
	shell := start(t, exec.Command("unshare", "-p", "-f", "--mount-proc", "--kill-child",
		"sh", "-c", "sleep 1000 <&- & echo $!; exec cat"))
	pid := shell.numbers()[0]
	script := onlyChild(t, shell.pid())
	sleep := onlyChild(t, script)
	found, err := Find(script, pid)
	require.NoError(t, err)
	require.Equal(t, idOf(t, sleep), found)

	eventually(t, func() bool { // the shell would wait for it
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", script))
		return err == nil && string(comm) == "cat\n"
	})
	require.NoError(t, unix.Kill(sleep, unix.SIGKILL))
	eventually(t, func() bool { return zombie(sleep) })
	_, err = Find(script, pid)
	require.ErrorIs(t, err, ErrUnknown)
}

// TestFindOfAContainer uses what a shell in a container takes for its pid.
func TestFindOfAContainer(t *testing.T) {
	shell := start(t, exec.Command("unshare", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", "echo $$; cat; true"))
	pid := shell.numbers()[0]
	require.Equal(t, 1, pid)
	script := onlyChild(t, shell.pid())
	cat := onlyChild(t, script)
	found, err := Find(cat, pid)
	require.NoError(t, err)
	require.Equal(t, idOf(t, script), found)
}

// TestStatusWithManyGroups has more groups than fit into a buffer.
func TestStatusWithManyGroups(t *testing.T) {
	var groups []uint32
	for gid := range uint32(4000) {
		groups = append(groups, 1_000_000_000+gid)
	}
	command := childCommand("threads")
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: groups}}
	p := start(t, command)
	numbers := p.numbers()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid()) + "/status")
	require.NoError(t, err)
	require.Greater(t, strings.Index(string(status), "NSpid:"), 40_000)
	found, err := Find(numbers[1], p.pid())
	require.NoError(t, err)
	require.Equal(t, p.id(), found)
	found, err = of(numbers[1])
	require.NoError(t, err)
	require.Equal(t, p.id(), found)
}

// TestNamespaceOfAnotherUser: it cannot be looked at, but whether it is ours can be told.
func TestNamespaceOfAnotherUser(t *testing.T) {
	other := exec.Command("cat")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	ours := start(t, other).pid()
	nested := exec.Command("cat")
	nested.SysProcAttr = &syscall.SysProcAttr{Credential: other.SysProcAttr.Credential, Cloneflags: unix.CLONE_NEWPID}
	theirs := start(t, nested).pid()
	own, err := Namespace()
	require.NoError(t, err)

	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread that may not look at others' ends
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var capabilities [2]unix.CapUserData
		if !assert.NoError(t, unix.Capget(&header, &capabilities[0])) {
			return
		}
		capabilities[0].Effective &^= 1 << unix.CAP_SYS_PTRACE
		if !assert.NoError(t, unix.Capset(&header, &capabilities[0])) {
			return
		}
		in, err := NamespaceOf(ours)
		assert.NoError(t, err)
		assert.Equal(t, own, in)
		_, err = NamespaceOf(theirs)
		assert.ErrorIs(t, err, ErrUnknown)
	}()
	<-done
}
