package budget

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

var anna, bert = User{Host: "h", UID: 1000}, User{Host: "h", UID: 1001}

func TestCountsForgetsKeysThatUseNothing(t *testing.T) {
	var counts Counts[User]
	counts.Add(anna, 3)
	counts.Add(bert, 3)
	counts.Add(User{UID: 7}, 9)
	require.Equal(t, []Use[User]{{Key: User{UID: 7}, Used: 9}, {Key: anna, Used: 3}}, counts.Largest(2, User.Compare))
	counts.Add(anna, -3)
	require.Zero(t, counts.Used(anna))
	require.Equal(t, 2, counts.Len())
}

func TestPoolLeavesRoomForOtherUsersAndForRoot(t *testing.T) {
	pool := NewPool(
		Limit{Budget: "calls", Of: "user", Setting: "--calls", Most: 3}, Limit{Budget: "calls", Of: "mount", Most: 6}, 2)
	for range 3 {
		require.NoError(t, pool.Take(anna, 1, Ordinary))
	}
	err := pool.Take(anna, 1, Ordinary)
	require.EqualError(t, err, "user 1000 on host h reached the limit of 3 calls for each user; "+
		"see the metric lockfs_budget_used of the daemon; change it with --calls")
	exceeded := new(ExceededError)
	require.True(t, errors.As(err, &exceeded))
	require.NoError(t, pool.Take(bert, 1, Ordinary))
	require.ErrorContains(t, pool.Take(bert, 1, Ordinary), "all users together")
	require.NoError(t, pool.Take(User{}, 2, Privileged))
	require.Error(t, pool.Take(User{}, 1, Privileged))
	usage := pool.Usage(1)
	require.Equal(t, uint64(6), usage.Total)
	require.Equal(t, uint64(3), usage.Refused)
	require.Equal(t, []Use[User]{{Key: anna, Used: 3}}, usage.Users)
	pool.Give(anna, 3, Ordinary)
	require.Zero(t, pool.Used(anna))
	require.NoError(t, pool.Take(bert, 2, Ordinary))
}
