package consensus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestAnInterruptedBootstrapIsRepeated interrupts it after each of its writes. The next attempt makes a
// cluster of one, with one id, and a server that is started in between makes none.
func TestAnInterruptedBootstrapIsRepeated(t *testing.T) {
	steps := map[string]func(*testing.T, *Directory, *storage){
		"after the identity": func(*testing.T, *Directory, *storage) {},
		"after the term": func(t *testing.T, _ *Directory, files *storage) {
			require.NoError(t, files.votes.SetUint64([]byte(keyCurrentTerm), 1))
		},
		"after the first entry": func(t *testing.T, d *Directory, files *storage) {
			require.NoError(t, files.bootstrap(d.onlyVoter()))
		},
	}
	for name, write := range steps {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			d, err := OpenDirectory(s.path, s.claim)
			require.NoError(t, err)
			cluster := d.ClusterID()
			files, _, err := openStorage(d, &Config{Logger: quietLogger(), StepDown: NewStepDown(), Fail: func(error) {}})
			require.NoError(t, err)
			write(t, d, files)
			require.NoError(t, files.close())
			require.NoError(t, d.Close())
			require.True(t, IsBootstrapping(s.path))

			for _, joins := range []bool{false, true} {
				claim := s.claim
				claim.Bootstrap, claim.Joins = false, joins
				_, err = OpenDirectory(s.path, claim)
				require.ErrorContains(t, err, "run it again")
			}
			d, err = OpenDirectory(s.path, s.claim)
			require.NoError(t, err)
			require.NoError(t, d.Bootstrap(s.Config))
			require.Equal(t, cluster, d.ClusterID())
			require.NoError(t, d.Bootstrap(s.Config), "nothing is left to do")
			require.NoError(t, d.Close())
			require.False(t, IsBootstrapping(s.path))

			s.claim.Bootstrap = false
			v := s.start(t)
			require.Len(t, v.Servers(), 1)
			require.Equal(t, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(v.dir.ID), Address: raft.ServerAddress(v.dir.Address)}, v.Servers()[0])
			v.mustCreate(t, "a")
			require.Equal(t, cluster, v.dir.ClusterID())
		})
	}
}

// TestNoClusterIsMadeUnlessAsked, whatever is left of a disk.
func TestNoClusterIsMadeUnlessAsked(t *testing.T) {
	s := newSetup(t)
	s.claim.Bootstrap = false
	_, err := OpenDirectory(s.path, s.claim)
	require.ErrorContains(t, err, "belongs to no cluster")
	require.NoDirExists(t, s.path)
	require.NoError(t, os.MkdirAll(filepath.Join(s.path, "lost+found"), 0o700))
	_, err = OpenDirectory(s.path, s.claim)
	require.ErrorContains(t, err, "lockfs server init")
	require.NoFileExists(t, filepath.Join(s.path, IdentityFile))

	s.claim.Joins = true
	d, err := OpenDirectory(s.path, s.claim)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	s.claim.Bootstrap, s.claim.Joins = true, false
	_, err = OpenDirectory(s.path, s.claim)
	require.ErrorContains(t, err, "was started to join a cluster")
}
