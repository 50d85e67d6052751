package session

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestPredictedQueries are the questions that the kernel has the mount ask then, and what the command changes.
func TestPredictedQueries(t *testing.T) {
	for _, test := range []struct {
		name, op string
		changes  []ids.Inode
		next     []string
	}{
		{
			"create", `create {parent: 5 name: "a" exclusive: true}`, []ids.Inode{5},
			[]string{`get_attr {ino: 5}`, `lookup {parent: 5 name: "a"}`, `get_attr {}`},
		}, {
			"write", `set_content {ino: 9 name {parent: 5 name: "a" token: 3}}`, []ids.Inode{5, 9},
			[]string{`get_attr {ino: 5}`, `lookup {parent: 5 name: "a"}`, `get_attr {ino: 9}`, `read {}`},
		},
		{"write by no name", `set_content {ino: 9}`, []ids.Inode{9}, []string{`get_attr {ino: 9}`, `read {}`}},
		{
			"unlink", `unlink {parent: 5 name: "a" judged: 9}`, []ids.Inode{5, 9},
			[]string{`get_attr {ino: 5}`, `lookup {parent: 5 name: "a"}`},
		}, {
			"unlink of nobody knows what", `unlink {parent: 5 name: "a"}`, []ids.Inode{5},
			[]string{`get_attr {ino: 5}`, `lookup {parent: 5 name: "a"}`},
		}, {
			"link", `link {ino: 9 parent: 5 name: "b"}`, []ids.Inode{5, 9},
			[]string{`get_attr {ino: 5}`, `lookup {parent: 5 name: "b"}`, `get_attr {ino: 9}`},
		}, {
			"rename", `rename {parent: 5 name: "a" new_parent: 5 new_name: "b" judged: 9 new_judged: 8}`, []ids.Inode{5, 8, 9},
			[]string{`get_attr {ino: 5}`, `lookup {parent: 5 name: "a"}`, `lookup {parent: 5 name: "b"}`},
		}, {
			"move", `rename {parent: 5 name: "a" new_parent: 4 new_name: "b" judged: 9 new_judged: 0}`, []ids.Inode{4, 5, 9},
			[]string{`get_attr {ino: 5}`, `lookup {parent: 5 name: "a"}`, `lookup {parent: 4 name: "b"}`, `get_attr {ino: 4}`},
		},
		{"chmod", `set_attr {ino: 9 mode: 0}`, []ids.Inode{9}, []string{`get_attr {ino: 9}`}},
		{"attribute", `set_xattr {ino: 9}`, []ids.Inode{9}, nil},
		{"no attribute", `remove_xattr {ino: 9}`, []ids.Inode{9}, nil},
		{"lock", `take_lock {ino: 9}`, []ids.Inode{}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := new(storepb.Op)
			require.NoError(t, prototext.Unmarshal([]byte(test.op), op))
			changes, next := predict(op)
			require.ElementsMatch(t, test.changes, changes)
			require.Len(t, next, len(test.next))
			for i, query := range next {
				want := new(storepb.Query)
				require.NoError(t, prototext.Unmarshal([]byte(test.next[i]), want))
				require.Equal(t, questionOf(want), questionOf(query), test.next[i])
			}
		})
	}
}

func TestUnpredictedRemovals(t *testing.T) {
	for text, unknown := range map[string]bool{
		`unlink {judged: 9}`: false, `unlink {}`: true, `unlink {judged: 18446744073709551615}`: true,
		`rename {judged: 9 new_judged: 0}`: false, `rename {judged: 9}`: true, `rename {new_judged: 9}`: true,
		`create {exclusive: true}`: false,
	} {
		op := new(storepb.Op)
		require.NoError(t, prototext.Unmarshal([]byte(text), op))
		require.Equal(t, unknown, isUnpredicted(op), text)
	}
}

// TestUsedQuestionsArePrefetched after its own, as many as there is room for.
func TestUsedQuestionsArePrefetched(t *testing.T) {
	own := lookupQueries(5, []byte("a"))
	again := []string{questionOf(own[1]), "no question"}
	for ino := range uint64(10) {
		again = append(again, questionOf(getAttr(10+ino)))
	}
	all := addQuestions(own, again)
	require.Len(t, all, 8)
	require.Equal(t, own, all[:2])
	require.EqualValues(t, 10, all[2].GetGetAttr().GetIno())
	require.EqualValues(t, 15, all[7].GetGetAttr().GetIno())
}
