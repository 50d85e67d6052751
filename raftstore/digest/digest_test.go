package digest_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

type rule string

func (r rule) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Rule{Rule: &storepb.Rule{Pattern: string(r)}}}
}

// TestHistoryDoesNotCount: sets that are equal have one sum, however they came about and whenever somebody asked.
func TestHistoryDoesNotCount(t *testing.T) {
	const values = 5000
	straight := digest.New()
	for i := range values {
		straight.Put(rule(strconv.Itoa(i)))
	}
	for range 3 {
		d := digest.New()
		for _, i := range rand.Perm(2 * values) {
			d.Put(rule(strconv.Itoa(i)))
			if rand.IntN(1000) == 0 {
				d.Sum()
			}
		}
		require.NotEqual(t, straight.Sum(), d.Sum())
		for _, i := range rand.Perm(values) {
			d.Remove(rule(strconv.Itoa(values + i)))
		}
		require.Equal(t, straight.Sum(), d.Sum())
		d.Remove(rule("0"))
		require.NotEqual(t, straight.Sum(), d.Sum())
		d.Put(rule("0"))
		require.Equal(t, straight.Sum(), d.Sum())
	}
}

// TestSwappedValuesDiffer: each number of a sum depends on the whole record.
func TestSwappedValuesDiffer(t *testing.T) {
	sumOf := func(rules ...rule) (s digest.Sum) {
		for _, r := range rules {
			s.Add(r.Record())
		}
		return s
	}
	require.NotEqual(t, sumOf("ab", "cd"), sumOf("ad", "cb"))
	require.Equal(t, sumOf("ab", "cd"), sumOf("cd", "ab"))
	s := sumOf("ab", "cd")
	s.Subtract(rule("cd").Record())
	require.Equal(t, sumOf("ab"), s)
	again, ok := digest.SumOf(s.Bytes())
	require.True(t, ok)
	require.Equal(t, s, again)
	_, ok = digest.SumOf(s.Bytes()[1:])
	require.False(t, ok)
}
