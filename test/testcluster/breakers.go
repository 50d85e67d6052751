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

// Breakers are workers with clients/breaker.sh, all after the same locks.
type Breakers struct {
	witness string
	Locks   int
	workers []*hosts.Process
}

const locksPerBreaker = 3

// StartBreakers starts a worker on each of some hosts, which may be named repeatedly, by a command that is put before.
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

// Stop lets the workers end, and answers what went wrong for them.
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

// logs is what the witness saw of each lock, without the holders that were late: others could rightly break
// their locks, and may have been inside with them.
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

// Overlaps is what is wrong with what the witness saw. While they are at work, they seem never to leave.
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

// Takeovers is how often a lock was had again whose holder had crashed.
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

// AwaitTakeovers is patient as long as there are more from time to time.
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
