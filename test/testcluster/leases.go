package testcluster

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"lockfs/test/hosts"
)

// LeasesVariable is "off" to start servers without leases, in tests without a choice.
const LeasesVariable = "LOCKFS_TEST_LEASES"

func leaseFlags() []string {
	if value := os.Getenv(LeasesVariable); value != "" {
		return []string{"--leases=" + value}
	}
	return nil
}

var leasedInodes = regexp.MustCompile(`(?m)^lockfs_leased_inodes (\d+)$`)

// AwaitLeases repeats do until mounts have leases on this many files and directories.
func (c *Cluster) AwaitLeases(t testing.TB, inodes int, do func()) {
	t.Helper()
	c.awaitLeases(t, func(leased int) bool { return leased >= inodes }, do)
}

// AwaitNoLeases waits until no mount has a lease: after a change a mount has some for a moment.
func (c *Cluster) AwaitNoLeases(t testing.TB) {
	t.Helper()
	c.awaitLeases(t, func(leased int) bool { return leased == 0 }, func() {})
}

func (c *Cluster) awaitLeases(t testing.TB, enough func(inodes int) bool, do func()) {
	t.Helper()
	leader := c.Leader()
	hosts.Eventually(t, "leases", func() (string, bool) {
		do()
		text, err := leader.Get("/metrics")
		found := leasedInodes.FindStringSubmatch(text)
		if err != nil || found == nil {
			return text, false
		}
		leased, err := strconv.Atoi(found[1])
		return found[0], err == nil && enough(leased)
	})
}
