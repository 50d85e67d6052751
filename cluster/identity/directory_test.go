package identity

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// grant is what a cluster of one authority gives to a key.
func grant(t testing.TB, authority *Authority, key *Key, called Name, servers ...string) IssuedCert {
	t.Helper()
	return IssuedCert{
		Leaf:        issue(t, authority, key, called, now),
		Authorities: [][]byte{authority.Certificate().Raw},
		Servers:     servers,
	}
}

// enrolled is the identity of a host in a directory.
func enrolled(t testing.TB, dir string, authority *Authority, called Name, servers ...string) *Credentials {
	t.Helper()
	key, err := Stage(dir)
	require.NoError(t, err)
	credentials, err := Commit(dir, grant(t, authority, key, called, servers...))
	require.NoError(t, err)
	return credentials
}

func requireSame(t testing.TB, want, got *Credentials) {
	t.Helper()
	require.Equal(t, want.Name(), got.Name())
	require.Equal(t, want.Key().Hash(), got.Key().Hash())
	require.Equal(t, want.Leaf(), got.Leaf())
	require.Equal(t, want.Authorities(), got.Authorities())
	require.Equal(t, want.Servers(), got.Servers())
	require.Equal(t, want.Signer(), got.Signer())
}

// TestOtherDirectoriesAreLeftAlone gives a home, or /etc, in place of a directory in it.
func TestOtherDirectoriesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	other := filepath.Join(dir, "passwd")
	require.NoError(t, os.WriteFile(other, nil, 0o644))
	_, err := Stage(dir)
	require.ErrorContains(t, err, "directory of its own")
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())

	require.NoError(t, os.Remove(other))
	for range 2 { // empty, and with a key of ours
		require.NoError(t, os.Chmod(dir, 0o755))
		_, err = Stage(dir)
		require.NoError(t, err)
		info, err = os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	}
}

func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc", "lockfs", "identity")
	_, err := Load(dir)
	require.ErrorIs(t, err, ErrNone)

	key, err := Stage(dir)
	require.NoError(t, err)
	again, err := Stage(dir)
	require.NoError(t, err)
	require.Equal(t, key.Hash(), again.Hash(), "an enrolment that was cut short is asked for with the same key")
	_, err = Load(dir)
	require.ErrorIs(t, err, ErrNone, "a key alone is no identity")

	authority := newAuthority(t)
	granted := grant(t, authority, key, Name{Client, "m1"}, "a:1", "b:2")
	credentials, err := Commit(dir, granted)
	require.NoError(t, err)
	require.Equal(t, Name{Client, "m1"}, credentials.Name())
	require.Equal(t, authority.Fingerprint(), credentials.Signer())
	require.Equal(t, []string{"a:1", "b:2"}, credentials.Servers())
	loaded, err := Load(dir)
	require.NoError(t, err)
	requireSame(t, credentials, loaded)
	_, err = Commit(dir, granted)
	require.NoError(t, err, "twice does no harm")

	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		info, err := file.Info()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), file.Name())
		names = append(names, file.Name())
	}
	require.Equal(t, []string{authoritiesFile, keyFile, leafFile, rosterFile, serversFile}, names)

	require.NoError(t, Remove(dir))
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, Remove(dir), "it is gone")
}

func TestRollback(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Rollback(filepath.Join(dir, "none")))
	first, err := Stage(dir)
	require.NoError(t, err)
	require.NoError(t, Rollback(dir))
	require.NoError(t, Rollback(dir))
	second, err := Stage(dir)
	require.NoError(t, err)
	require.NotEqual(t, first.Hash(), second.Hash())

	// Cut just before the end: the key is in use.
	granted, err := parseIssuedCert(grant(t, newAuthority(t), second, Name{Client, "m1"}))
	require.NoError(t, err)
	require.NoError(t, run(writeSteps(dir, granted.with(second))[:3]))
	require.NoError(t, Rollback(dir))
	loaded, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, second.Hash(), loaded.Key().Hash())
}

func TestCommitRefusesAnotherKey(t *testing.T) {
	dir := t.TempDir()
	authority, other := newAuthority(t), newAuthority(t)
	key, err := Stage(dir)
	require.NoError(t, err)
	good := grant(t, authority, key, Name{Client, "m1"})

	for what, bad := range map[string]IssuedCert{
		"for another key":      grant(t, authority, newKey(t), Name{Client, "m1"}),
		"of another authority": {Leaf: good.Leaf, Authorities: [][]byte{other.Certificate().Raw}},
		"no authority":         {Leaf: good.Leaf},
		"no certificate":       {Leaf: []byte("x"), Authorities: good.Authorities},
		"an authority's own":   {Leaf: authority.Certificate().Raw, Authorities: good.Authorities},
		"a bad chain":          {Leaf: good.Leaf, Authorities: good.Authorities, Chain: [][]byte{{1}}},
		"a bad authority":      {Leaf: good.Leaf, Authorities: [][]byte{{1}}},
	} {
		_, err := Commit(dir, bad)
		require.Error(t, err, what)
		_, err = Load(dir)
		require.ErrorIs(t, err, ErrNone, what)
		_, err = NewCredentials(key, bad)
		require.Error(t, err, what)
	}
	_, err = Commit(dir, good)
	require.NoError(t, err)
}

func TestRemoveIsCut(t *testing.T) {
	dir := t.TempDir()
	enrolled(t, dir, newAuthority(t), Name{Client, "m1"})
	require.NoError(t, os.Remove(filepath.Join(dir, leafFile)))
	_, err := Load(dir)
	require.ErrorIs(t, err, ErrNone)
	loaded := enrolled(t, dir, newAuthority(t), Name{Client, "m2"})
	require.Equal(t, Name{Client, "m2"}, loaded.Name())
}

func TestKeyThatOthersCanRead(t *testing.T) {
	dir := t.TempDir()
	enrolled(t, dir, newAuthority(t), Name{Client, "m1"})
	path := filepath.Join(dir, keyFile)
	require.NoError(t, os.Chmod(path, 0o644))
	_, err := Load(dir)
	var exposed *ExposedError
	require.ErrorAs(t, err, &exposed)
	require.Equal(t, path, exposed.Path)
}

// What is damaged is said, and is not taken for a host that never enrolled.
func TestDamagedDirectory(t *testing.T) {
	for _, file := range []string{keyFile, leafFile, authoritiesFile} {
		dir := t.TempDir()
		enrolled(t, dir, newAuthority(t), Name{Client, "m1"})
		path := filepath.Join(dir, file)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, bad := range [][]byte{nil, content[:len(content)/2], append([]byte("x"), content[20:]...)} {
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			_, err = Load(dir)
			require.ErrorContains(t, err, path)
			require.NotErrorIs(t, err, ErrNone)
		}
		if file == leafFile {
			continue
		}
		require.NoError(t, os.Remove(path))
		_, err = Load(dir)
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrNone)
	}
}

// A host enrols and renews, and its process is cut at any step, also in the middle of a file: what is
// loaded afterwards is the whole of what was in force before or after, and the enrolment can be done
// again.
func TestWritingIsCutAnywhere(t *testing.T) {
	authorities := []*Authority{newAuthority(t), newAuthority(t)}
	called := Name{Server, "a"}
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		var inForce *bundle // nil: none
		for range rapid.IntRange(1, 8).Draw(r, "times") {
			authority := rapid.SampledFrom(authorities).Draw(r, "authority")
			key := (*Key)(nil)
			if inForce != nil && rapid.Bool().Draw(r, "renew") {
				key = inForce.key
			} else {
				var err error
				key, err = Stage(dir)
				require.NoError(t, err)
				if inForce != nil {
					require.NotEqual(t, inForce.key.Hash(), key.Hash(), "an enrolment has a key of its own")
				}
			}
			granted, err := parseIssuedCert(grant(t, authority, key, called, "a:1"))
			require.NoError(t, err)
			granted = granted.with(key)
			steps := writeSteps(dir, granted)
			whole := rapid.IntRange(0, len(steps)).Draw(r, "steps")
			require.NoError(t, run(steps[:whole]))
			if half := rapid.SampledFrom([]string{"", serversFile, authoritiesFile, leafFile, nextKeyFile}).Draw(r, "half"); half != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, half+".tmp"), []byte("-----BEGIN"), 0o600))
			}
			if whole > 2 {
				inForce = granted
			}

			loaded, err := Load(dir)
			if inForce == nil {
				require.ErrorIs(t, err, ErrNone)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, inForce.leaf, loaded.Leaf())
			require.Equal(t, inForce.key.Hash(), loaded.Key().Hash())
		}
		key, err := Stage(dir)
		require.NoError(t, err)
		credentials, err := Commit(dir, grant(t, authorities[0], key, called, "b:2"))
		require.NoError(t, err)
		loaded, err := Load(dir)
		require.NoError(t, err)
		requireSame(t, credentials, loaded)
	})
}

// Several mounts of a host have one identity, and each renews it by itself.
func TestProcessesShareADirectory(t *testing.T) {
	dir := t.TempDir()
	authority := newAuthority(t)
	first := enrolled(t, dir, authority, Name{Client, "m1"}, "a:1")
	second, err := Load(dir)
	require.NoError(t, err)

	require.NoError(t, first.Renew(grant(t, authority, first.Key(), Name{Client, "m1"})))
	require.Equal(t, []string{"a:1"}, first.Servers(), "none were told")
	require.NotEqual(t, first.Leaf(), second.Leaf())
	require.NoError(t, second.Reload())
	requireSame(t, first, second)

	// Enrolled again, with another key, while both run.
	again := enrolled(t, dir, authority, Name{Client, "m1"}, "c:3")
	require.NoError(t, first.Renew(grant(t, authority, first.Key(), Name{Client, "m1"})))
	requireSame(t, again, first)
	require.NoError(t, second.Reload())
	requireSame(t, again, second)

	// Enrolled as another host: whoever runs goes on as he was.
	enrolled(t, dir, authority, Name{Client, "m2"})
	require.ErrorContains(t, second.Reload(), "m2.client.lockfs")
	require.ErrorContains(t, first.Renew(grant(t, authority, first.Key(), Name{Client, "m1"})), "m2.client.lockfs")
	require.Equal(t, Name{Client, "m1"}, first.Name())

	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			loaded, err := Load(dir)
			if err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				renewal := IssuedCert{Leaf: loaded.Leaf().Raw, Authorities: [][]byte{authority.Certificate().Raw}}
				if err := loaded.Renew(renewal); err != nil {
					t.Error(err)
				}
				if _, err := Load(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}

func TestRenewThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	authority := newAuthority(t)
	credentials := enrolled(t, dir, authority, Name{Client, "m1"}, "a:1")
	was := credentials.Leaf()
	require.Error(t, credentials.Renew(grant(t, authority, newKey(t), Name{Client, "m1"})), "another key")
	require.Error(t, credentials.Renew(grant(t, authority, credentials.Key(), Name{Client, "m2"})), "another name")
	require.Error(t, credentials.Renew(IssuedCert{}))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, leafFile+".tmp", "in the way"), 0o700))
	require.Error(t, credentials.Renew(grant(t, authority, credentials.Key(), Name{Client, "m1"})))
	require.Equal(t, was, credentials.Leaf())

	require.NoError(t, credentials.SetServers([]string{"b:1"}))
	loaded, err := Load(dir)
	require.NoError(t, err)
	requireSame(t, credentials, loaded)
}
