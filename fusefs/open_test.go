package fusefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

const nobody = 65534

func TestExclusiveCreate(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	const rounds, workers = 20, 4
	for round := range rounds {
		name := fmt.Sprint("lock", round)
		var taken atomic.Int32
		var group sync.WaitGroup
		for worker := range workers {
			dir := []string{here, there}[worker%2]
			group.Go(func() {
				f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
				if errors.Is(err, syscall.EEXIST) {
					return
				}
				if !assert.NoError(t, err) {
					return
				}
				taken.Add(1)
				_, err = f.WriteString("held")
				assert.NoError(t, err)
				assert.NoError(t, f.Close())
			})
		}
		group.Wait()
		require.EqualValues(t, 1, taken.Load())
		require.Equal(t, "held", readFile(t, filepath.Join(there, name)), "written through a 0444 handle")
	}
}

func TestCreatedFile(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	require.Equal(t, "0 1 640 regular empty file", shell(t, dir, "umask 027; : >f; stat -c '%s %h %a %F' f"))
	f := openFile(t, filepath.Join(dir, "g"), os.O_CREATE|os.O_EXCL|os.O_RDWR)
	var byHandle syscall.Stat_t
	require.NoError(t, syscall.Fstat(int(f.Fd()), &byHandle))
	require.Equal(t, lstat(t, f.Name()), &byHandle)
}

func TestTruncateAtOpen(t *testing.T) {
	c := newCluster()
	dir, _ := mountFor(t, c)
	other, _ := mountFor(t, c)
	path := writeFile(t, dir, "f", "something long")
	ino := lstat(t, path).Ino
	require.Empty(t, shell(t, other, ": >f; cat f"))
	shell(t, other, "echo x >f")
	require.Equal(t, "x\n", readFile(t, path))
	require.Equal(t, ino, lstat(t, path).Ino)
}

// lateLookup makes one lookup of a name miss, as if it were created right after.
func lateLookup(s *session, name string) {
	var missed atomic.Bool
	s.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if string(query.GetLookup().GetName()) != name || missed.Swap(true) {
			return nil, false, nil
		}
		return &storepb.Result{Code: storepb.Code_NOT_FOUND}, true, nil
	})
}

func TestCreateOfWhatCameMeanwhile(t *testing.T) {
	c := newCluster()
	dir, s := mountFor(t, c)
	other, _ := mountFor(t, c)

	writeFile(t, other, "append", "old ")
	lateLookup(s, "append")
	shell(t, dir, "printf new >>append")
	require.Equal(t, "old new", readFile(t, filepath.Join(other, "append")))

	writeFile(t, other, "truncate", "old ")
	lateLookup(s, "truncate")
	shell(t, dir, "printf new >truncate")
	require.Equal(t, "new", readFile(t, filepath.Join(other, "truncate")))

	require.NoError(t, os.Chmod(other, 0o777)) // not sticky, else the kernel protects files there in its own way
	require.NoError(t, os.Chmod(writeFile(t, other, "private", "old"), 0o600))
	lateLookup(s, "private")
	output, err := runAs(t, nobody, dir, "sh", "-c", "printf new >private")
	require.Error(t, err)
	require.Contains(t, output, "Permission denied")
	require.Equal(t, "old", readFile(t, filepath.Join(other, "private")))

	require.NoError(t, os.Symlink("append", filepath.Join(other, "symlink")))
	lateLookup(s, "symlink")
	shell(t, dir, "printf er >>symlink")
	require.Equal(t, "old newer", readFile(t, filepath.Join(other, "append")))
}
