package admin

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
)

func someLocks() []lockjson.Lock {
	return []lockjson.Lock{
		{Path: "a.lock", State: "held", Host: "web1"},
		{Path: "busy.lock", State: "held", Advisory: []lockjson.Advisory{{State: lockjson.AdvisoryHeld}, {State: lockjson.AdvisoryWaiting}}},
		{Path: "gone.lock", State: "unreachable", Host: "web2"},
		{Path: "old.lock", State: "stale", Host: "web1"},
	}
}

func TestTopShowsTroubleFirst(t *testing.T) {
	m := &top{look: func() desk { return desk{at: time.Unix(1, 0), head: "leader a", locks: someLocks()} }}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 20})
	m.Update(m.Init()())
	paths := func() (paths []string) {
		for _, line := range strings.Split(m.text(), "\n")[3:] {
			if word, _, _ := strings.Cut(line, " "); strings.HasSuffix(word, ".lock") {
				paths = append(paths, word)
			}
		}
		return paths
	}
	require.Equal(t, []string{"gone.lock", "old.lock", "busy.lock", "a.lock"}, paths())
	require.Contains(t, m.text(), "leader a")
	for _, line := range strings.Split(m.text(), "\n") {
		require.LessOrEqual(t, len([]rune(line)), 100)
	}

	press := func(keys ...tea.KeyPressMsg) (last tea.Cmd) {
		for _, key := range keys {
			_, last = m.Update(key)
		}
		return last
	}
	rune1 := func(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Text: string(r)} }
	press(rune1('j'))
	require.Equal(t, "old.lock", paths()[0])
	press(rune1('/'), rune1('w'), rune1('e'), rune1('b'), rune1('1'), tea.KeyPressMsg{Code: tea.KeyEnter})
	require.Equal(t, []string{"old.lock", "a.lock"}, paths())
	m.Update(desk{at: time.Unix(2, 0), err: errors.New("nobody leads")})
	require.Contains(t, m.text(), "no answer: nobody leads")
	require.Equal(t, []string{"old.lock", "a.lock"}, paths(), "what was seen last stays")
	require.Equal(t, tea.Quit(), press(rune1('q'))())
}

func TestWatchingPrintsWhatHasChanged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	locks, times := someLocks(), 0
	var out, notices bytes.Buffer
	list := func() ([]lockjson.Lock, error) {
		times++
		switch times {
		case 2:
			locks[0].Age = 5 // nothing else
		case 3:
			return nil, errors.New("nobody leads")
		case 4:
			locks = locks[1:]
		case 5:
			cancel()
		}
		return locks, nil
	}
	require.NoError(t, watchLocks(ctx, &out, &notices, false, list))
	require.Equal(t, 2, strings.Count(out.String(), "PATH"), out.String())
	require.Equal(t, 1, strings.Count(out.String(), "a.lock"))
	require.Contains(t, notices.String(), "nobody leads")
	require.ErrorContains(t, watchLocks(t.Context(), &out, &notices, true, func() ([]lockjson.Lock, error) { return nil, errors.New("never") }), "never")
}
