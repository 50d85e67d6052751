package raftstore

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestWaitForWakesWhomItConcerns has many wait, each for another command. All are told, each once its own was applied, and of those who
// wait no more nothing is left.
func TestWaitForWakesWhomItConcerns(t *testing.T) {
	const commands = 200
	fsm := NewFSM(namespace.New(), "self", func(error) {})
	tick := encoded(t, &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
	seen := make(chan ids.Index, commands)
	for n := range ids.Index(commands) {
		go func() {
			var at ids.Index
			err := fsm.WaitFor(context.Background(), func(ns *namespace.Namespace) bool {
				at = ns.Index()
				return at > n
			})
			if err == nil && at > n {
				seen <- n
			}
		}()
	}
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- fsm.WaitFor(gone, func(*namespace.Namespace) bool { return false }) }()
	waiters := func() int {
		fsm.mu.Lock()
		defer fsm.mu.Unlock()
		return fsm.waiters.Len()
	}
	require.Eventually(t, func() bool { return waiters() == commands+1 }, time.Minute, time.Millisecond)
	for n := range uint64(commands) {
		fsm.Apply(&raft.Log{Index: n + 1, Term: 1, Data: tick})
		require.EqualValues(t, n, <-seen)
		require.Equal(t, commands-int(n), waiters())
	}
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	require.Zero(t, waiters())
}
