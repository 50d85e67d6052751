package testcluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// Load returns the share of a processor used by a process in some time.
func Load(t testing.TB, p *hosts.Process) float64 {
	t.Helper()
	const long = 10 * time.Second
	before := processorTime(t, p)
	time.Sleep(long)
	return float64(processorTime(t, p)-before) / float64(long)
}

// processorTime returns the processor time of a process so far.
func processorTime(t testing.TB, p *hosts.Process) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	require.NoError(t, err)
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')'):])
	var ticks int
	for _, field := range fields[12:14] { // utime and stime: proc_pid_stat(5)
		n, err := strconv.Atoi(string(field))
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// Resident returns the memory of a process in MiB.
func Resident(t testing.TB, p *hosts.Process) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib >> 10
}
