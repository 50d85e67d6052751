package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckHolds(t *testing.T) {
	first := []locked{
		{client: 0, start: 1, end: 2, kind: Flock, mode: WriteLock},
		{client: 0, start: 5, end: 6, kind: Read},
		{client: 0, start: 9, end: 10, kind: Read, errno: lost},
	}
	for name, test := range map[string]struct {
		second   locked
		possible bool
	}{
		"after the last time that it was surely held": {locked{client: 2, start: 3, end: 6, kind: Flock, mode: WriteLock}, true},
		"while it was":         {locked{client: 2, start: 3, end: 4, kind: Flock, mode: WriteLock}, false},
		"refused while it was": {locked{client: 2, start: 3, end: 4, kind: Flock, mode: WriteLock, errno: again}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []*LockCall
			for i, l := range append(first[:len(first):len(first)], test.second) {
				calls = append(calls, l.call(i))
			}
			holds, err := CheckHolds(calls)
			require.Positive(t, holds)
			if test.possible {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrImpossible)
		})
	}
}
