package faults

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A givenUp is a way in which somebody creates a file, is never told so, and others use it.
type givenUp struct {
	exclusive bool
	killed    bool   // else its time is up
	locks     string // when another one locks it: before that, at the same time or after
}

// TestGivenUpCreations has a program on one host create a file, which is given up when it is done. One on another host opens the
// file and locks it. Whatever becomes of the name, a third one does not get the lock as long as the second one has it.
func TestGivenUpCreations(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	other := c.AddGuest(t, "o")
	other.Start(t)
	c.Program = testcluster.FaultyProgram(t)
	g := c.AddGuest(t, "m", "--op-timeout=1s")
	g.Environment = []string{"LOCKFS_TEST_FAULT=lose-answers"}
	g.Start(t)
	second, third := testcluster.StartActor(t, c.Nodes[0].Host, c.Mount), testcluster.StartActor(t, other.Host, c.Mount)
	var ways []givenUp
	for _, exclusive := range []bool{false, true} {
		for _, locks := range []string{"before", "meanwhile", "after"} {
			ways = append(ways, givenUp{exclusive, true, locks}, givenUp{exclusive, false, locks})
		}
	}
	seen := make(map[string]int)
	for round := range testcluster.Rounds(len(ways), 104) {
		way := ways[round%len(ways)]
		name := fmt.Sprintf("untold-%d", round)
		became := way.play(t, g, second, third, name)
		seen[fmt.Sprintf("%+v %s", way, became)]++
		if !way.exclusive {
			require.Equal(t, "kept", became, "%+v", way)
		}
	}
	t.Log(seen)
}

func (way givenUp) play(t *testing.T, g *testcluster.Guest, second, third testcluster.Actor, name string) (became string) {
	t.Helper()
	flags := "os.O_RDWR | os.O_CREAT"
	if way.exclusive {
		flags += " | os.O_EXCL"
	}
	maker := g.Host.Start("python3", "-c", fmt.Sprintf("import os; os.open(%q, %s)", g.Cluster.Path(name), flags))
	hosts.Eventually(t, "the file is there", func() (string, bool) {
		_, err := g.Cluster.Nodes[0].Host.Run("test", "-e", g.Cluster.Path(name))
		return fmt.Sprint(err), err == nil
	})
	second.Must(fmt.Sprintf(`opened("f", %q, os.O_RDWR)`, name))
	locked := func() string { return second.Says(`flock("f", "ex")`) }
	var answer string
	if way.locks == "before" {
		answer = locked()
	}
	if way.killed {
		if way.locks == "meanwhile" {
			time.Sleep(time.Duration(rand.Int64N(int64(5 * time.Millisecond))))
		}
		maker.Signal(9)
	}
	if way.locks == "meanwhile" {
		time.Sleep(time.Duration(rand.Int64N(int64(5 * time.Millisecond))))
		answer = locked()
	}
	require.Error(t, maker.Wait(), "it was told of the file")
	g.Host.MustRun(t, "mkdir", g.Cluster.Path("settled-"+name)) // which waits until the creation is settled
	if way.locks == "after" {
		answer = locked()
	}
	became = "kept"
	if answer == "ESTALE" {
		became = "taken back"
		second.Require(`close("f")`, "ok")
		second.Must(fmt.Sprintf(`opened("f", %q)`, name))
		answer = locked()
	}
	require.Equal(t, "ok", answer, "%+v", way)
	third.Must(fmt.Sprintf(`opened("f", %q)`, name))
	third.Require(`flock("f", "ex")`, "EAGAIN")
	second.Require(`close("f")`, "ok")
	third.Require(`flock("f", "ex", wait=True)`, "ok")
	third.Require(`close("f")`, "ok")
	return became
}
