package kernellocks

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// play has actors, named by the first word of each line, do steps, each with what it has to answer after
// "=>". A and B in an answer are their pids.
func play(t testing.TB, scene string, actors map[string]testcluster.Actor, pids map[string]string) {
	t.Helper()
	for line := range strings.Lines(scene) {
		who, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if who == "" {
			continue
		}
		step, answer, _ := strings.Cut(rest, "=>")
		answer = strings.TrimSpace(answer)
		for name, pid := range pids {
			answer = strings.ReplaceAll(answer, "by "+name, "by "+pid)
		}
		require.Equal(t, answer, actors[who].Says(step), "%s: %s", who, step)
	}
}

// playEverywhere plays scenes on the local disk, which shows that they are what the kernel does, then on one
// host of a cluster, then on two.
func playEverywhere(t *testing.T, c *testcluster.Cluster, scenes map[string]string) {
	t.Helper()
	a, b := c.Leader().Host, c.Others(c.Leader())[0].Host
	for _, place := range []struct {
		name, dir string
		a, b      *hosts.Host
	}{
		{"the local disk", filepath.Join(c.Net.Dir(), "disk"), a, a},
		{"one host", c.Path("one"), b, b},
		{"two hosts", c.Path("two"), a, b},
	} {
		place.a.MustRun(t, "mkdir", "-p", filepath.Join(place.dir, "0"))
		actors := make(map[string]testcluster.Actor)
		for name, h := range map[string]*hosts.Host{"A": place.a, "B": place.b} {
			actors[name] = testcluster.StartActor(t, h, filepath.Join(place.dir, "0"))
		}
		pids := make(map[string]string)
		for name, actor := range actors {
			pids[name] = "0" // a pid means nothing on another host
			if place.a == place.b {
				pids[name] = actor.Says("print(os.getpid())")
			}
		}
		number := 0
		for name, scene := range scenes {
			number++
			t.Run(place.name+"/"+name, func(t *testing.T) {
				for _, actor := range actors {
					actor.Must(fmt.Sprintf(`os.makedirs("../%d", exist_ok=True); os.chdir("../%[1]d")`, number))
					actor.Must(`opened("f", "lock")`)
				}
				play(t, scene, actors, pids)
			})
		}
	}
}
