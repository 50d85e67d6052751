package kernellocks

import (
	"fmt"
	"strings"
	"testing"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestKernelLockIsTheLock has programs that lock a file, write a pid into it and leave it there when they end. Whoever
// waits, waits for that very file; what it says is nobody's lock.
func TestKernelLockIsTheLock(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	everywhere := c.Hosts()
	for _, name := range []string{"birch", "cedar"} {
		g := c.AddGuest(t, name)
		g.Start(t)
		everywhere = append(everywhere, g.Host)
	}
	for _, kind := range []string{"flock", "fcntl", "ofd"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := &kernelLock{c: c, hosts: everywhere, kind: kind}
			for _, h := range everywhere {
				a := testcluster.StartActor(t, h, c.Mount)
				a.Must("from pidlock import *")
				k.actors = append(k.actors, a)
			}
			for n := range testcluster.Rounds(2, 100) {
				k.number = n
				k.requireKept(t, "own", "")
				k.requireKept(t, "checked", ", checks=True")
				k.requireKept(t, "helper", ", helper=True")
				k.requireNext(t)
			}
		})
	}
}

// kernelLock is programs with kernel locks of a kind, on several hosts, which change their parts with each round.
type kernelLock struct {
	c      *testcluster.Cluster
	hosts  []*hosts.Host
	kind   string
	actors []testcluster.Actor
	number int
}

// path is a file that no other round uses, but for every other: one is new, and one has been there for long.
func (k *kernelLock) path(what string) string {
	if k.number%2 == 0 {
		return fmt.Sprintf("%s-%s", k.kind, what)
	}
	return fmt.Sprintf("%s-%s-%d", k.kind, what, k.number)
}

func (k *kernelLock) actor(part int) (testcluster.Actor, *hosts.Host) {
	part = (part + k.number) % len(k.actors)
	return k.actors[part], k.hosts[part]
}

func (k *kernelLock) begin(a testcluster.Actor, name, path, more string) {
	a.Must(fmt.Sprintf("begin(%q, %q, %q%s)", name, k.kind, path, more))
}

// awaitWaiters waits until the cluster knows of so many that wait for a lock.
func (k *kernelLock) awaitWaiters(t testing.TB, path string, count int) {
	t.Helper()
	hosts.Eventually(t, fmt.Sprintf("%d wait for %s", count, path), func() (string, bool) {
		why, err := k.hosts[0].Run("cat", k.c.Path(".lockfs/why", path))
		return fmt.Sprint(why, err), strings.Count(why, "waited for") == count
	})
}

// requireKept has a program killed that had the lock, while another waits. That has it then, and none that comes later,
// until the end; the file stays what it is.
func (k *kernelLock) requireKept(t testing.TB, what, more string) {
	t.Helper()
	first, _ := k.actor(0)
	second, there := k.actor(1)
	third, _ := k.actor(2)
	path := k.path(what)
	mark := path + ".mark"
	k.begin(first, "first", path, fmt.Sprintf(", mark=%q%s", mark, more))
	first.Require(`hear("first")`, "in")
	third.Require(fmt.Sprintf("attempt(%q, %q)", k.kind, path), "taken")
	k.begin(second, "second", path, more)
	k.awaitWaiters(t, path, 1)

	first.Must(`end("first", signal.SIGKILL)`)
	second.Require(`hear("second")`, "in")
	// What lockfs does about the end of a process that wrote its pid is done once its other lock is gone.
	k.c.AwaitGone(t, mark, there)
	third.Require(fmt.Sprintf("attempt(%q, %q)", k.kind, path), "taken")
	second.Require(`tell("second", "k")`, "kept")
	k.begin(third, "third", path, more)
	k.awaitWaiters(t, path, 1)
	second.Must(`end("second", signal.SIGTERM)`)
	third.Require(`hear("third")`, "in")
	third.Require(`tell("third", "k")`, "kept")
	third.Must(`end("third", signal.SIGTERM)`)
}

// requireNext has the next holder write its pid while the last one's process goes on, which wrote its own.
func (k *kernelLock) requireNext(t testing.TB) {
	t.Helper()
	first, _ := k.actor(0)
	second, _ := k.actor(1)
	third, _ := k.actor(2)
	path := k.path("next")
	k.begin(first, "first", path, "")
	first.Require(`hear("first")`, "in")
	k.begin(second, "second", path, "")
	k.awaitWaiters(t, path, 1)
	first.Require(`tell("first", "u")`, "ok\nout")
	second.Require(`hear("second")`, "in")
	third.Require(fmt.Sprintf("attempt(%q, %q)", k.kind, path), "taken")
	second.Require(`tell("second", "k")`, "kept")
	first.Must(`end("first", signal.SIGTERM)`)
	second.Must(`end("second", signal.SIGTERM)`)
	k.begin(third, "third", path, "") // the end of a process is heard of a little later
	third.Require(`hear("third")`, "in")
	third.Must(`end("third", signal.SIGTERM)`)
}
