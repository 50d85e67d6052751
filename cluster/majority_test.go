package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompareStates(t *testing.T) {
	t.Parallel()
	sound := func(version, hash string) stateReply { return stateReply{version, hash, hash} }
	x, y, z := sound("1", "x"), sound("1", "y"), sound("1", "z")
	flipped := stateReply{"1", "y", "x"}
	for name, test := range map[string]struct {
		voters  int
		answers []stateReply // of a, b, c and so on
		differs string
		unclear bool
	}{
		"alone":                        {1, []stateReply{x}, "", false},
		"alone, memory changed":        {1, []stateReply{flipped}, "", true},
		"two agree":                    {2, []stateReply{x, x}, "", false},
		"two differ":                   {2, []stateReply{x, y}, "", true},
		"one of two changed":           {2, []stateReply{x, flipped}, "", true},
		"one of two answers":           {2, []stateReply{x}, "", false},
		"three agree":                  {3, []stateReply{x, x, x}, "", false},
		"one of three differs":         {3, []stateReply{x, y, x}, "b", false},
		"one of three changed":         {3, []stateReply{x, flipped, x}, "b", false},
		"it kept another hash":         {3, []stateReply{x, x, {"1", "x", "y"}}, "c", false},
		"three differ":                 {3, []stateReply{x, y, z}, "", true},
		"two that changed alike":       {3, []stateReply{flipped, flipped, x}, "", true},
		"two of three answer":          {3, []stateReply{x, x}, "", false},
		"two of three answer, differ":  {3, []stateReply{x, y}, "", true},
		"two of four":                  {4, []stateReply{x, x, y, y}, "", true},
		"two of five differ":           {5, []stateReply{x, y, x, z, x}, "bd", false},
		"another version":              {3, []stateReply{x, x, sound("2", "y")}, "", false},
		"half of them another version": {4, []stateReply{x, x, sound("2", "y"), sound("2", "y")}, "", false},
		"other versions' memory":       {3, []stateReply{x, sound("2", "y"), {"3", "z", "y"}}, "", true},
		"nobody answers":               {3, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			answers := make(map[string]stateReply)
			for i, answer := range test.answers {
				answers[string(rune('a'+i))] = answer
			}
			found := compareStates(test.voters, answers)
			require.Equal(t, test.unclear, found.undecided)
			require.Len(t, found.differs, len(test.differs))
			for _, id := range test.differs {
				require.True(t, found.differs[string(id)])
			}
		})
	}
}
