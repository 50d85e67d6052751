package faultinjection

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A Figure has the resources of a daemon at some time.
type Figure struct {
	Name                          string
	Memory                        float64 // bytes in memory
	Descriptors, Goroutines, Term float64
	Applied                       float64 // index
}

const appliedIndex = "lockfs_raft_applied_index"

// Figures queries all daemons.
func (s *Site) Figures() (all []Figure) {
	s.sample()
	for _, g := range s.all() {
		seen, _ := g.metrics.seen()
		all = append(all, Figure{
			Name: g.name, Memory: seen.values["process_resident_memory_bytes"], Descriptors: seen.values["process_open_fds"],
			Goroutines: seen.values["go_goroutines"], Term: seen.values["lockfs_raft_term"], Applied: seen.values[appliedIndex],
		})
	}
	return all
}

// Describe returns a line for each daemon.
func Describe(figures []Figure) string {
	var b strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&b, "%-8s %6.1f MiB %5.0f descriptors %5.0f goroutines", f.Name, f.Memory/(1<<20), f.Descriptors, f.Goroutines)
		if f.Term > 0 {
			fmt.Fprintf(&b, "  term %.0f, index %.0f", f.Term, f.Applied)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Save copies the data of all servers to a directory.
func (s *Site) Save(t testing.TB, dir string) {
	t.Helper()
	for _, g := range s.servers {
		if g.disk == nil {
			continue
		}
		if said, err := g.host.Run("cp", "-r", g.disk.small, filepath.Join(dir, g.name+".data")); err != nil {
			t.Logf("data of %s: %s %v", g.name, said, err)
		}
	}
}
