package formats_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats"
	"lockfs/formats/lockfact"
)

func TestWordsOfNames(t *testing.T) {
	for says, names := range map[lockfact.NameSays][]string{
		lockfact.NameSaysLock: {
			"lock", "a.lock", ".lock", "LOCK", "x.lck", "LCK..ttyS0", "00LOCK-pkg", "SingletonLock", "deploy-lock", "lock_file", "lock1", "lockfile", ".parentlock",
			"locks", "wlock", "index.lock", "passwd.lock", "run.pid", "pid", "job.running", ".busy", "leader", "owner", "mutex", "x.sem", "lock.json",
			".#main.go", ".~lock.report.odt#", "~$report.docx", "LOCK.v2", "ключ.lock", "claim-7",
		},
		lockfact.NameSaysData: {
			"yarn.lock", "Cargo.lock", "Gemfile.lock", "flake.lock", "poetry.lock", "package-lock.json", ".gitkeep", ".terraform.lock.hcl", "lock.go",
			"test_lock.py", "mutex.h", "owners.md", "pid.c", "locks.proto",
		},
		lockfact.NameSaysNothing: {
			"", "a", "c", "go", "clock", "block", "unlock", "locker", "deadlocks", "flocked", "rapid", "semantics", "data.txt", "job", "notes", "CODEOWNERS",
			"lockfs", "hostname", "blocklist", "Lockheed", strings.Repeat("lock.", 60),
		},
	} {
		for _, name := range names {
			require.Equal(t, says, formats.WordsOf(name), name)
		}
	}
}
