package fusefs

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// squashing is the Operator of a mount whose root is nobody: what the leader does to its callers.
type squashing struct{ *session }

func squash(caller *storepb.Caller) *storepb.Caller {
	if caller.GetUid() == 0 {
		caller.Uid, caller.Gid, caller.Squashed = namespace.Nobody, namespace.Nobody, true
	}
	return caller
}

func (s squashing) Mutate(ctx context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error) {
	return s.session.Mutate(ctx, squash(caller), op)
}

func (s squashing) Create(
	ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, error) {
	return s.session.Create(ctx, squash(caller), op, answer)
}

// squashTree is made by root; the scripts below say what they may do with it.
const squashTree = `umask 022
mkdir open shut private sticky; chmod 777 open; chmod 755 shut; chmod 700 private; chmod 1777 sticky
for d in open shut private sticky; do echo $d > $d/f; echo $d > $d/secret; chmod 600 $d/secret; echo $d > $d/free; chmod 666 $d/free; done
mkdir open/blind; chmod 711 open/blind; echo x > open/blind/f`

// TestSquashedRootSeesWhatNobodySeesOnDisk has root of such a mount and nobody on a local disk do the same, and compares what they are told.
func TestSquashedRootSeesWhatNobodySeesOnDisk(t *testing.T) {
	c := newCluster()
	trusted, _ := mountFor(t, c)
	squashed := t.TempDir()
	mountAt(t, squashed, squashing{c.openOn("other")}, Options{RootIsNobody: func(context.Context) (bool, error) { return true, nil }})
	disk := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(disk), 0o755))
	require.NoError(t, os.Chmod(disk, 0o1777))
	for _, dir := range []string{trusted, disk} {
		as(t, dir, syscall.Credential{}, squashTree)
	}
	for _, script := range []string{
		"cat shut/f shut/secret", "ls private", "cat private/free", "ls open/blind", "cat open/blind/f", "ls shut",
		"echo new > shut/new", "echo new > shut/f", "echo more >> shut/free; cat shut/free", "echo more >> open/secret",
		"echo new > open/new; stat -c '%u %g %a' open/new; chmod 400 open/new; cat open/new; echo more >> open/new",
		"umask 777; echo unreadable > open/none; cat open/none", "mkdir open/dir shut/dir; stat -c '%u %a' open/dir",
		"rm -f sticky/f", "rm -f open/f; ls open", "mv -f sticky/free open/taken", "mv -f open/free sticky/mine; ls sticky",
		"ln shut/f open/hard", "ln shut/free open/hard", "ln -s x shut/soft", "chmod 666 shut/f", "chown 0 open/new", "touch shut/free shut/f",
		"truncate -s 0 shut/f", "truncate -s 1 shut/free", "stat private/f", "find . -name f | sort",
	} {
		script += " 2>&1; true"
		want := as(t, disk, syscall.Credential{Uid: nobody, Gid: nobody}, script)
		got := as(t, squashed, syscall.Credential{}, script)
		require.Equal(t, strings.ReplaceAll(want, disk, "."), strings.ReplaceAll(got, squashed, "."), "%s", script)
	}
	for _, script := range []string{
		"cat .lockfs/why/shut/secret", "cat .lockfs/kv/private/f", "ls .lockfs/why/private", "cat .lockfs/wait/private/free", "ls .lockfs/force/private",
	} {
		require.Contains(t, as(t, squashed, syscall.Credential{}, script+" 2>&1; true"), "Permission denied", "%s", script)
	}
	require.Contains(t, as(t, squashed, syscall.Credential{}, "cat .lockfs/why/shut/f; ls .lockfs"), "shut/f")
	require.Equal(t, "private", as(t, trusted, syscall.Credential{}, "cat private/secret"), "root of another host is root")
}

// TestWhetherRootIsNobodyIsWaitedFor has root look at a file of its own while that is not known, as just after a mount has begun.
func TestWhetherRootIsNobodyIsWaitedFor(t *testing.T) {
	c := newCluster()
	trusted, _ := mountFor(t, c)
	as(t, trusted, syscall.Credential{}, "umask 077; echo mine > private")
	for name, of := range map[string]struct {
		isKilled bool
		known    error
		said     string
	}{
		"root is root":        {said: "mine"},
		"nobody answers":      {known: context.DeadlineExceeded, said: "timed out"},
		"killed as it waited": {isKilled: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked, known := make(chan struct{}, 1), make(chan struct{})
			dir := t.TempDir()
			mountAt(t, dir, c.openOn("other"), Options{RootIsNobody: func(ctx context.Context) (bool, error) {
				select {
				case asked <- struct{}{}:
				default:
				}
				select {
				case <-known:
					return false, of.known
				case <-ctx.Done():
					return false, ctx.Err()
				}
			}})
			cat, said := exec.Command("cat", filepath.Join(dir, "private")), new(bytes.Buffer)
			cat.Stdout, cat.Stderr = said, said
			require.NoError(t, cat.Start())
			<-asked
			if of.isKilled {
				require.NoError(t, cat.Process.Kill())
			} else {
				close(known)
			}
			_ = cat.Wait()
			require.Contains(t, said.String(), of.said)
			require.NotContains(t, said.String(), "denied")
		})
	}
}
