package faults

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// upgrades hand mounts over to another program, alone and together with other harm.
var upgrades = []harm{
	{"guest upgraded", func(s *schedule, t testing.TB) { upgrade(t, s.guest.Daemon)() }},
	{"guest upgraded again and again", func(s *schedule, t testing.TB) {
		for range 5 {
			upgrade(t, s.guest.Daemon)()
		}
	}},
	{"leader upgraded", func(s *schedule, t testing.TB) { upgrade(t, s.c.Leader().Server)() }},
	{"follower upgraded", func(s *schedule, t testing.TB) { upgrade(t, s.follower().Server)() }},
	{"guest upgraded and cut off", func(s *schedule, t testing.TB) {
		await := upgrade(t, s.guest.Daemon)
		s.cut(s.guest.Host)
		await()
	}},
	{"guest frozen and upgraded", func(s *schedule, t testing.TB) {
		s.guest.Daemon.Freeze() // before, for exec may lose a SIGSTOP
		await := upgrade(t, s.guest.Daemon)
		s.hold(1.2, 1.8)
		s.guest.Daemon.Thaw()
		await()
	}},
	{"guest upgraded and leader killed", func(s *schedule, t testing.TB) {
		await := upgrade(t, s.guest.Daemon)
		s.restart(t, s.c.Leader())
		await()
	}},
	{"guest killed in an upgrade", func(s *schedule, t testing.TB) {
		_ = upgrade(t, s.guest.Daemon)
		s.hold(0, 0.2)
		s.guest.Kill()
		s.guest.Start(t)
	}},
}

// kills are of processes whose guards keep what is left for the next, as under systemd.
var kills = []harm{
	{"guest killed", func(s *schedule, t testing.TB) { killAndStart(s, t) }},
	{"guest killed again and again", func(s *schedule, t testing.TB) {
		for range 4 {
			killAndStart(s, t)
		}
	}},
	{"guest killed and cut off", func(s *schedule, t testing.TB) {
		s.guest.Kill()
		s.guest.Launch(t)
		s.cut(s.guest.Host)
		requireGoesOn(t, s.guest.Daemon)
	}},
	{"guest killed and leader killed", func(s *schedule, t testing.TB) {
		s.guest.Kill()
		s.guest.Launch(t)
		s.restart(t, s.c.Leader())
		requireGoesOn(t, s.guest.Daemon)
	}},
	{"guest killed before it has taken over", func(s *schedule, t testing.TB) {
		s.guest.Kill()
		s.guest.Launch(t)
		s.hold(0, 0.1)
		killAndStart(s, t)
	}},
	{"guest upgraded and killed", func(s *schedule, t testing.TB) {
		upgrade(t, s.guest.Daemon)()
		killAndStart(s, t)
	}},
}

func killAndStart(s *schedule, t testing.TB) {
	t.Helper()
	s.guest.Kill()
	s.hold(0, 0.3)
	s.guest.Launch(t)
	requireGoesOn(t, s.guest.Daemon)
}

func requireGoesOn(t testing.TB, daemon *hosts.Process) {
	t.Helper()
	require.NoError(t, daemon.WaitOutput("went on with the mount"))
	require.NoError(t, daemon.WaitOutput("lockfs: ready at "))
}

// upgrade has the program at its path go on with the mount of a daemon, and answers how to wait for that, or for the daemon to have put it off.
func upgrade(t testing.TB, daemon *hosts.Process) (await func()) {
	t.Helper()
	attempts := func() int {
		log := daemon.Log()
		return strings.Count(log, "went on with the mount") + strings.Count(log, "no new program took over the mount")
	}
	before := attempts()
	daemon.Signal(syscall.SIGHUP)
	return func() {
		t.Helper()
		hosts.Eventually(t, "the mount is handed over, or not", func() (string, bool) { return daemon.Log(), attempts() > before })
	}
}

// TestUpgradeHistories is TestHistories and TestLockHistories for mounts that are handed over to another program.
func TestUpgradeHistories(t *testing.T) {
	t.Parallel()
	seed := randomSeed(t)
	harms := upgrades[:testcluster.Rounds(len(upgrades)-1, len(upgrades))] // one is killed in a long run only
	t.Run("names", func(t *testing.T) { testHistories(t, harms, seed, 5*time.Second, sometimesLeased) })
	t.Run("locks", func(t *testing.T) { testLockHistories(t, harms, len(harms), seed, 1500*time.Millisecond, 0) })
}

// TestKillHistories is TestHistories for mounts that are gone on with after their processes were killed.
func TestKillHistories(t *testing.T) {
	t.Parallel()
	seed := randomSeed(t)
	t.Run("names", func(t *testing.T) {
		testHistories(t, kills, seed, 5*time.Second, sometimesLeased, "NOTIFY_SOCKET=/run/no-such-socket")
	})
}
