package hostinfo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSubordinateUIDsCountForTheirOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("# ranges\n1001:200000:65536\n1000:100000:65536\nroot:300000:65536\nno-such-user:400000:10\n1002:0:10\n1003:500000:0\nbroken\n1004:4294967295:2\n")
	s := &subordinateUIDs{path: path}
	for uid, owner := range map[uint32]uint32{
		0: 0, 1000: 1000, 99999: 99999, 100000: 1000, 165535: 1000, 165536: 165536, 200001: 1001, 265536: 265536,
		300001: 300001, 400001: 400001, 5: 5, 500000: 500000, 4294967295: 4294967295,
	} {
		require.Equal(t, owner, s.ownerOf(uid), "uid %d", uid)
	}
	write("1005:100000:10\n")
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	s.until = time.Time{}
	require.Equal(t, uint32(1005), s.ownerOf(100001))
	require.NoError(t, os.Remove(path))
	s.until = time.Time{}
	require.Equal(t, uint32(100001), s.ownerOf(100001))
}
