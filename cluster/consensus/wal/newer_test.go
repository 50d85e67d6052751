package wal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/checksum"
)

// requireSound requires that an error is not about damage, and says where it comes from and what it is.
func requireSound(t *testing.T, err error, path, what string) {
	t.Helper()
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, what)
	require.NotErrorAs(t, err, new(*Damage))
}

// TestSoundFilesAreNotDamaged has files that a newer version wrote, that belong elsewhere, and that cannot be read.
func TestSoundFilesAreNotDamaged(t *testing.T) {
	s := newSample(t, 1)
	changed := func(at int, to byte) []byte {
		content := bytes.Clone(s.content)
		content[at] = to
		commit := s.ends[0] - wordSize
		binary.LittleEndian.PutUint32(content[commit+4:], checksum.Of(content[:commit]))
		return content
	}
	_, err := s.open(t, changed(versionAt, 1))
	requireSound(t, err, s.tail, "update this node")
	_, err = s.open(t, changed(16, 99))
	requireSound(t, err, s.tail, "put that one back")
	require.NoError(t, os.WriteFile(s.tail, s.content, 0o600))

	path := filepath.Join(s.dir, metaFile)
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	var outer sealed
	require.NoError(t, json.Unmarshal(sound, &outer))
	outer.State = append([]byte(`{"Later":1,`), outer.State[1:]...)
	outer.Checksum = checksum.Of(outer.State)
	newer, err := json.Marshal(outer)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, newer, 0o600))
	_, err = openTest(s.dir, true)
	requireSound(t, err, path, "update this node")
	require.NoError(t, os.WriteFile(path, sound, 0o600))

	for _, file := range []string{s.tail, path} { // a directory in its place cannot be read
		require.NoError(t, os.Rename(file, file+".away"))
		require.NoError(t, os.Mkdir(file, 0o700))
		_, err = openTest(s.dir, true)
		requireSound(t, err, file, "is a directory")
		require.ErrorAs(t, err, new(*fs.PathError))
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Rename(file+".away", file))
	}
	log := mustOpen(t, s.dir, true)
	requireEntries(t, log, 1, s.last)
	crash(t, log)
}
