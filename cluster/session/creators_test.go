package session

import (
	"bufio"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/process"
	"lockfs/raftstore/storepb"
)

// TestCreatorsOfAScript, and not those that it was started by: touch makes a lock for the script that ran it, however long that
// has run.
func TestCreatorsOfAScript(t *testing.T) {
	namespace, err := process.Namespace()
	require.NoError(t, err)
	h := &holders{bootID: readBootID(), namespace: namespace}

	caller := exec.Command("sh", "-c", `sh -c 'echo $$; read go; sh -c "echo \$\$; read go"; true'; true`)
	caller.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := caller.StdinPipe()
	require.NoError(t, err)
	out, err := caller.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, caller.Start())
	t.Cleanup(func() { require.NoError(t, caller.Wait()) })
	t.Cleanup(func() { require.NoError(t, in.Close()) })
	answers := bufio.NewReader(out)
	pid := func() int {
		line, err := answers.ReadString('\n')
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		require.NoError(t, err)
		return pid
	}
	script := pid()
	require.Eventually(t, func() bool { return h.made(script).GetFamily() == 1 }, time.Minute, time.Second/10)
	_, err = io.WriteString(in, "go\n")
	require.NoError(t, err)
	touch := h.made(pid())
	require.EqualValues(t, 2, touch.GetFamily())
	require.EqualValues(t, script, touch.GetLineage()[1].GetPid())
	require.EqualValues(t, caller.Process.Pid, touch.GetLineage()[2].GetPid())
}

func (h *holders) made(pid int) *storepb.Caller {
	caller := &storepb.Caller{Pid: uint32(pid)}
	h.attachLineage(caller)
	return caller
}
