package process

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarked(t *testing.T) {
	mark := strings.Repeat("5a", leastMark/2)
	marked := exec.Command("sh", "-c", "(setsid sleep 1000 <&- >&- &); cat; true")
	marked.Env = append(os.Environ(), MarkVariable+"="+mark)
	script := start(t, marked)
	require.Empty(t, MarkOf(script.pid()), "it is marked, and marks nothing")
	marks := func(mark string) string {
		cmd := exec.Command("cat")
		cmd.Env = []string{MarksVariable + "=" + mark}
		return MarkOf(start(t, cmd).pid())
	}
	require.Equal(t, mark, marks(mark))
	require.Empty(t, marks("5a"), "too short")
	var all []int
	eventually(t, func() bool {
		all = Marked(mark)
		return len(all) == 3 // sh, cat and sleep, which has lost its parent
	})
	script.kill()
	script.end()
	for _, pid := range all {
		process, err := os.FindProcess(pid)
		require.NoError(t, err)
		_ = process.Kill()
	}
	eventually(t, func() bool { return len(Marked(mark)) == 0 })
}
