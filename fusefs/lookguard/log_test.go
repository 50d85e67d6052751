package lookguard

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/storepb"
)

// memo is a Log that is to be replaced soon.
type memo struct{ text []byte }

func (m *memo) Append(text []byte) bool {
	m.text = append(m.text, text...)
	return len(m.text) < 1000
}

func (m *memo) Replace(text []byte) { m.text = text }

// TestALogHasItAll, whatever was seen, forgotten and listed, and however often it was replaced.
func TestALogHasItAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := new(memo)
		m := New(nil)
		m.KeepIn(log)
		process := rapid.Custom(func(t *rapid.T) Process { return Process{rapid.IntRange(1, 4).Draw(t, "pid"), 7} })
		name := rapid.SampledFrom([]string{"a", "b", "a long name of a lock"})
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			family := rapid.SliceOfN(process, 1, 3).Draw(t, "family")
			seen := &storepb.Observation{
				Parent: rapid.Uint64Range(1, 2).Draw(t, "parent"), Name: []byte(name.Draw(t, "name")), Token: rapid.Uint64Range(1, 9).Draw(t, "token"),
				Empty: rapid.Bool().Draw(t, "empty"), Data: rapid.IntRange(0, 4).Draw(t, "data") == 0,
			}
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				m.forget(family, Name{1, name.Draw(t, "gone")})
			case 1:
				m.list(family[0], 5, 1)
			default:
				m.note(family, 5, []*storepb.Observation{seen}, How(rapid.IntRange(0, 2).Draw(t, "how")))
			}
		}
		heir := New(nil)
		heir.Replay(append(log.text, 1)) // it was killed while it wrote
		require.ElementsMatch(t, m.Save().Entries, heir.Save().Entries)
	})
}
