package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// Breakers are workers with clients/breaker.sh, all on the same locks.
type Breakers struct {
	witness string
	Locks   int
	workers []*hosts.Process
}

const locksPerBreaker = 3

// StartBreakers starts a worker on each of some hosts, possibly repeated, with a command as prefix.
func StartBreakers(t testing.TB, before []string, format, dir, witness string, on ...*hosts.Host) *Breakers {
	t.Helper()
	script := ClientPath(t, "breaker.sh")
	require.NoError(t, os.Mkdir(witness, 0o755))
	b := &Breakers{witness: witness, Locks: len(on) * locksPerBreaker}
	for i, h := range on {
		name := fmt.Sprintf("%s-%d", h.Name(), i)
		command := append(slices.Clone(before), "bash", script, format, dir, witness, name, fmt.Sprint(b.Locks))
		b.workers = append(b.workers, h.Start(command[0], command[1:]...))
	}
	return b
}

// Stop ends the workers and returns their errors.
func (b *Breakers) Stop(t testing.TB) (errors []string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(b.witness, "stop"), nil, 0o644))
	for _, worker := range b.workers {
		require.NoError(t, worker.Wait())
		for line := range strings.Lines(worker.Stdout()) {
			if strings.HasPrefix(line, "error: ") {
				errors = append(errors, fmt.Sprintf("%s: %s", worker.Host().Name(), line))
			}
		}
	}
	return errors
}

var lateHolder = regexp.MustCompile(`(?m)^late (.*)$`)

// logs returns the witness's records of each lock without late holders. Other workers could rightly break
// their locks, and may have overlapped with them.
func (b *Breakers) logs(t testing.TB) (logs []string) {
	t.Helper()
	for i := range b.Locks {
		text, err := os.ReadFile(filepath.Join(b.witness, fmt.Sprint(i)))
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		log := string(text)
		for _, late := range lateHolder.FindAllStringSubmatch(log, -1) {
			log = regexp.MustCompile(`(?m)^.* `+late[1]+`\n`).ReplaceAllString(log, "")
		}
		logs = append(logs, log)
	}
	return logs
}

// Overlaps returns the faults in the witness's records. While workers run, some seem never to leave.
func (b *Breakers) Overlaps(t testing.TB) (faults []string) {
	t.Helper()
	for i, log := range b.logs(t) {
		found, _ := Overlaps(log)
		for _, fault := range found {
			faults = append(faults, fmt.Sprintf("lock %d, %s", i, fault))
		}
	}
	return faults
}

// Takeovers returns the number of acquisitions after a crash of the holder.
func (b *Breakers) Takeovers(t testing.TB) (count int) {
	t.Helper()
	for _, log := range b.logs(t) {
		crashes := strings.Count(log, "crash ")
		if last := strings.LastIndex(log, "crash "); last >= 0 && !strings.Contains(log[last:], "enter ") {
			crashes--
		}
		count += crashes
	}
	return count
}

// AwaitTakeovers waits as long as the number of takeovers grows.
func (b *Breakers) AwaitTakeovers(t testing.TB, count int) {
	t.Helper()
	for next := b.Takeovers(t); next < count; {
		next = min(count, next+10)
		hosts.Eventually(t, fmt.Sprintf("%d takeovers", next), func() (string, bool) {
			now := b.Takeovers(t)
			return fmt.Sprint(now), now >= next
		})
	}
}
