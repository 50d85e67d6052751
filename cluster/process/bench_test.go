package process

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func benchmark(b *testing.B, name string, do func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, do())
		}
	})
}

func BenchmarkOf(b *testing.B) {
	of := func(thread int) func() error {
		return func() error {
			_, err := of(thread)
			return err
		}
	}
	benchmark(b, "main", of(start(b, exec.Command("cat")).pid()))
	for _, threads := range []string{"1", "500"} {
		numbers := startChild(b, 0, "threads", threads).numbers()
		benchmark(b, "main_with_"+threads, of(numbers[0]))
		benchmark(b, "other_of_"+threads, of(numbers[1]))
	}
}

func BenchmarkLineage(b *testing.B) {
	cat := onlyChild(b, start(b, exec.Command("sh", "-c", "cat; true")).pid())
	lineage, err := Ancestors(cat)
	require.NoError(b, err)
	benchmark(b, fmt.Sprintf("of_%d", len(lineage)), func() error {
		_, err := Ancestors(cat)
		return err
	})
}

func BenchmarkFind(b *testing.B) {
	nested := startChild(b, unix.CLONE_NEWPID, "pair")
	second := nested.numbers()[0]
	for _, row := range []struct {
		name        string
		caller, pid int
	}{
		{"same_namespace", os.Getpid(), nested.pid()},
		{"nested_own", nested.pid(), 1},
		{"nested_other", nested.pid(), second},
	} {
		benchmark(b, row.name, func() error {
			_, err := Find(row.caller, row.pid)
			return err
		})
		benchmark(b, row.name+"_kin", func() error {
			_, err := FindRelative(row.caller, row.pid)
			return err
		})
	}
}

func BenchmarkNamespaces(b *testing.B) {
	nested := startChild(b, unix.CLONE_NEWPID, "wait")
	nested.numbers()
	benchmark(b, "own", func() error {
		_, err := NamespaceOf(nested.pid())
		return err
	})
	benchmark(b, "all", func() error {
		_, err := Namespaces(nested.pid())
		return err
	})
}

func BenchmarkHostname(b *testing.B) {
	nested := startChild(b, unix.CLONE_NEWUTS, "hostname", "elsewhere")
	nested.numbers()
	for name, thread := range map[string]int{"same": os.Getpid(), "other": nested.pid()} {
		benchmark(b, name, func() error {
			_, err := Hostname(thread)
			return err
		})
	}
}

func BenchmarkWatch(b *testing.B) {
	gone := make(chan ID, 1)
	w, err := NewWatcher(func(id ID, _ End) { gone <- id })
	require.NoError(b, err)
	defer func() { require.NoError(b, w.Close()) }()
	id := start(b, exec.Command("cat")).id()
	benchmark(b, "again", func() error { return w.Watch(id) })
	benchmark(b, "ended", func() error {
		err := w.Watch(ID{id.PID, 1})
		<-gone
		return err
	})
	benchmark(b, "alive", func() error {
		require.True(b, Alive(id))
		return nil
	})
}
