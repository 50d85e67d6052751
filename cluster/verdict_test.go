package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJudgeStates(t *testing.T) {
	t.Parallel()
	sound := func(version, hash string) stateAnswer { return stateAnswer{version, hash, hash} }
	x, y, z := sound("1", "x"), sound("1", "y"), sound("1", "z")
	flipped := stateAnswer{"1", "y", "x"}
	for name, test := range map[string]struct {
		voters  int
		answers []stateAnswer // of a, b, c and so on
		differs string
		unclear bool
	}{
		"alone":                        {1, []stateAnswer{x}, "", false},
		"alone, memory changed":        {1, []stateAnswer{flipped}, "", true},
		"two agree":                    {2, []stateAnswer{x, x}, "", false},
		"two differ":                   {2, []stateAnswer{x, y}, "", true},
		"one of two changed":           {2, []stateAnswer{x, flipped}, "", true},
		"one of two answers":           {2, []stateAnswer{x}, "", false},
		"three agree":                  {3, []stateAnswer{x, x, x}, "", false},
		"one of three differs":         {3, []stateAnswer{x, y, x}, "b", false},
		"one of three changed":         {3, []stateAnswer{x, flipped, x}, "b", false},
		"it kept another hash":         {3, []stateAnswer{x, x, {"1", "x", "y"}}, "c", false},
		"three differ":                 {3, []stateAnswer{x, y, z}, "", true},
		"two that changed alike":       {3, []stateAnswer{flipped, flipped, x}, "", true},
		"two of three answer":          {3, []stateAnswer{x, x}, "", false},
		"two of three answer, differ":  {3, []stateAnswer{x, y}, "", true},
		"two of four":                  {4, []stateAnswer{x, x, y, y}, "", true},
		"two of five differ":           {5, []stateAnswer{x, y, x, z, x}, "bd", false},
		"another version":              {3, []stateAnswer{x, x, sound("2", "y")}, "", false},
		"half of them another version": {4, []stateAnswer{x, x, sound("2", "y"), sound("2", "y")}, "", false},
		"other versions' memory":       {3, []stateAnswer{x, sound("2", "y"), {"3", "z", "y"}}, "", true},
		"nobody answers":               {3, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			answers := make(map[string]stateAnswer)
			for i, answer := range test.answers {
				answers[string(rune('a'+i))] = answer
			}
			found := judgeStates(test.voters, answers)
			require.Equal(t, test.unclear, found.undecided)
			require.Len(t, found.differs, len(test.differs))
			for _, id := range test.differs {
				require.True(t, found.differs[string(id)])
			}
		})
	}
}
