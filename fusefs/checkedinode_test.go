package fusefs

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestNobodyRemovesWhatTheKernelHasNotJudged has another host replace a name between the kernel's look at it and the removal.
func TestNobodyRemovesWhatTheKernelHasNotJudged(t *testing.T) {
	for _, row := range []struct {
		program []string
		mode    uint32 // of what is there, and comes there
		removal func(op *storepb.Op) bool
		wasFree bool
	}{
		{[]string{"rm", "-f", "lock"}, unix.S_IFREG | 0o666, isUnlink, false},
		{[]string{"rm", "-f", ".lockfs/force/lock"}, unix.S_IFREG | 0o666, isUnlink, false},
		{[]string{"rmdir", "lock"}, unix.S_IFDIR | 0o777, isUnlink, false},
		{[]string{"mv", "lock", "mine"}, unix.S_IFREG | 0o666, isRename, false},
		{[]string{"mv", "-f", "-T", "mine", "lock"}, unix.S_IFREG | 0o666, isRename, false},
		{[]string{"python3", "-c", "import os; os.rename('mine', 'lock')"}, unix.S_IFREG | 0o666, isRename, true},
	} {
		t.Run(row.program[0], func(t *testing.T) {
			c := newCluster()
			dir, s := mountFor(t, c)
			other := c.openOn("other")
			do := func(uid uint32, op *storepb.Op) *storepb.Result {
				result, err := other.Mutate(t.Context(), &storepb.Caller{Uid: uid, Gid: uid}, op)
				require.NoError(t, err)
				require.Equal(t, storepb.Code_OK, result.GetCode())
				return result
			}
			take := func(uid uint32) uint64 {
				create := &storepb.Create{Parent: namespace.RootIno, Name: []byte("lock"), Mode: row.mode}
				return do(uid, &storepb.Op{Op: &storepb.Op_Create{Create: create}}).GetAttr().GetIno()
			}
			if !row.wasFree {
				take(nobody)
			}
			mine := writeFile(t, dir, "mine", "")
			require.NoError(t, os.Chown(mine, nobody, nobody))

			var roots atomic.Uint64
			s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
				if op == nil || !row.removal(op) || roots.Load() != 0 {
					return nil, false, nil
				}
				if !row.wasFree {
					do(0, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{
						Parent: namespace.RootIno, Name: []byte("lock"), Directory: row.mode&unix.S_IFMT == unix.S_IFDIR,
					}}})
				}
				roots.Store(take(0))
				return nil, false, nil
			})
			output, err := runAs(t, nobody, dir, row.program[0], row.program[1:]...)
			require.Error(t, err)
			require.Contains(t, output, "Operation not permitted")
			require.NotZero(t, roots.Load())
			require.Equal(t, roots.Load(), lstat(t, filepath.Join(dir, "lock")).Ino)
			require.Equal(t, "lock mine", shell(t, dir, "echo $(ls)"))
		})
	}
}

func isUnlink(op *storepb.Op) bool { return op.GetUnlink() != nil }
func isRename(op *storepb.Op) bool { return op.GetRename() != nil }

// TestWhoIsAlwaysTooLateIsNotPermitted has the name be the caller's whenever the kernel looks, and another's when it is removed.
func TestWhoIsAlwaysTooLateIsNotPermitted(t *testing.T) {
	c := newCluster()
	dir, s := mountFor(t, c)
	other := c.openOn("other")
	belong := func(uid uint32) {
		for _, op := range []*storepb.Op{
			{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte("lock")}}},
			{Op: &storepb.Op_Create{Create: &storepb.Create{Parent: namespace.RootIno, Name: []byte("lock"), Mode: unix.S_IFREG}}},
		} {
			_, err := other.Mutate(t.Context(), &storepb.Caller{Uid: uid, Gid: uid}, op)
			require.NoError(t, err)
		}
	}
	belong(nobody)
	tries := 0
	s.intercept(func(op *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		switch {
		case string(query.GetLookup().GetName()) == "lock":
			belong(nobody)
		case op != nil && isUnlink(op):
			tries++
			belong(0)
		}
		return nil, false, nil
	})
	output, err := runAs(t, nobody, dir, "python3", "-c", "import os; os.unlink('lock')")
	require.Error(t, err)
	require.Contains(t, output, "Operation not permitted")
	require.Equal(t, 2, tries)
}

// TestEachCallMayLookAgain: that one call had to look twice is nothing to the next.
func TestEachCallMayLookAgain(t *testing.T) {
	js := newJudgements()
	by := &storepb.Caller{Pid: uint32(os.Getpid())}
	another, done := &storepb.Result{Code: storepb.Code_NOT_JUDGED}, &storepb.Result{}
	require.Equal(t, syscall.ESTALE, js.judge(by, another, syscall.ESTALE))
	require.Zero(t, js.judge(by, done, 0))
	require.Equal(t, syscall.ESTALE, js.judge(by, another, syscall.ESTALE))
	require.Equal(t, syscall.EPERM, js.judge(by, another, syscall.ESTALE))
	require.Equal(t, syscall.ESTALE, js.judge(by, another, syscall.ESTALE))
}
