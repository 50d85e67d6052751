package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/checksum"
	"lockfs/test/fuzzing"
)

// FuzzMeta reads anything as the file that lists the segments of a log, with a right checksum too. It is damaged, of a newer version, or what it says.
func FuzzMeta(f *testing.F) {
	f.Add([]byte(`{"NextSegmentID":1,"Segments":null,"Closed":true,"End":0}`), true)
	f.Add([]byte(`{"NextSegmentID":2,"Segments":[{"ID":1,"BaseIndex":1,"MinIndex":1,"MaxIndex":9,"IndexStart":7}]}`), true)
	f.Add([]byte(`{"checksum":1,"state":{}}`), false)
	dir := f.TempDir()
	fuzzing.Run(f, func(t *testing.T, content []byte, sealed bool) {
		if sealed {
			content = fmt.Appendf(nil, `{"checksum":%d,"state":%s}`, checksum.Of(content), content)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, metaFile), content, 0o600))
		_, err := loadMeta(dir)
		damage := new(Damage)
		require.True(t, err == nil || errors.As(err, &damage) || errors.Is(err, errNewer), err)
	})
}
