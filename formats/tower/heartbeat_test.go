package tower_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/tower"
)

func TestTower52HeartbeatIntervalIsAThirdOfTheTTL(t *testing.T) {
	require.Equal(t, 300*time.Second, tower.HeartbeatInterval(900))
	require.Equal(t, time.Second/3, tower.HeartbeatInterval(1))
	require.Positive(t, tower.HeartbeatInterval(1<<62))
}

func TestTower52ShorterIntervalsAreRecommended(t *testing.T) {
	require.Equal(t, 30*time.Second, tower.RecommendedInterval(900))
	require.Equal(t, 20*time.Second, tower.RecommendedInterval(60))
}

func TestTower53HeartbeatMustUpdateOnlyLastHeartbeatAt(t *testing.T) {
	now := at("10:31:10.999")
	content, err := tower.Heartbeat([]byte(example), now)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(example, "10:30:40Z", "10:31:10Z", 1), string(content))
}

func TestTower53HeartbeatMustPreserveAllOtherFields(t *testing.T) {
	// Of other programs, in another order and layout, with the name of the field in other places.
	const before = "\r\n{ \"zeta\":[1,  2.50e1], \"ttl_seconds\":900,\"last_heartbeat_at\" :\t\"OLD\"  ," +
		"\"metadata\":{\"last_heartbeat_at\":\"2001-01-01T00:00:00Z\",\"k\":\"\\u00e9\"}, \"a\":null," +
		"\"lock_version\":\"v1\",\"lock_name\":\"n\",\"request_id\":\"r\",\"actor\":\"last_heartbeat_at\"," +
		"\"intent\":\"i\",\"intent_version\":\"1\",\"host_id\":\"h\",\"pid\":1," +
		"\"created_at\":\"2025-12-18T10:30:10+00:00\"}  \n\n"
	content := []byte(strings.Replace(before, "OLD", "2025-12-18T10:30:40.123456Z", 1))
	renewed, err := tower.Heartbeat(content, at("11:00:00"))
	require.NoError(t, err)
	require.Equal(t, strings.Replace(before, "OLD", "2025-12-18T11:00:00Z", 1), string(renewed))

	l, err := tower.Parse(renewed)
	require.NoError(t, err)
	require.Equal(t, at("11:00:00"), l.LastHeartbeatAt)
}

// A clock that was set back makes no lock invalid: see section 12.2.
func TestTower53HeartbeatIsNeverBeforeCreation(t *testing.T) {
	for _, now := range []time.Time{at("10:30:09"), at("09:00:00"), at("10:30:10")} {
		content, err := tower.Heartbeat([]byte(example), now)
		require.NoError(t, err)
		require.Equal(t, strings.Replace(example, "10:30:40Z", "10:30:10Z", 1), string(content))
		_, err = tower.Parse(content)
		require.NoError(t, err)
	}
}

func TestTower53HeartbeatRefusesWhatIsNoLock(t *testing.T) {
	for _, content := range []string{"", "{}", example[:100], `{"last_heartbeat_at":"x"}`} {
		_, err := tower.Heartbeat([]byte(content), at("11:00:00"))
		require.Error(t, err)
	}
}

func TestTower54ThreeFailuresCallForAnEvent(t *testing.T) {
	require.Equal(t, 3, tower.MaxHeartbeatFailures)
}
