package tower

import (
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/internal/strictjson"
)

// MaxHeartbeatFailures is the number of failures in a row before a heartbeat_failed event (section 5.4).
const MaxHeartbeatFailures = 3

// responsiveInterval is the longest interval recommended by section 5.2.
const responsiveInterval = 30 * time.Second

// HeartbeatInterval returns the interval required by section 5.2: a third of the time to live.
func HeartbeatInterval(ttlSeconds int64) time.Duration {
	return ttl(ttlSeconds) / 3
}

// RecommendedInterval returns the interval recommended by section 5.2: 30 seconds, or the required one if it
// is shorter.
func RecommendedInterval(ttlSeconds int64) time.Duration {
	return min(responsiveInterval, HeartbeatInterval(ttlSeconds))
}

func ttl(seconds int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(seconds, most)) * time.Second
}

// Heartbeat returns the content with last_heartbeat_at set to now, in whole seconds, and all other bytes
// unchanged: fields of other programs, order and layout (section 5.3). After a clock was set back it is
// created_at at the earliest, because no heartbeat precedes the lock. Heartbeat refuses an invalid lock.
func Heartbeat(content []byte, now time.Time) ([]byte, error) {
	l, err := Parse(content)
	if err != nil {
		return nil, err
	}
	if now.Before(l.CreatedAt) {
		now = l.CreatedAt
	}
	object, err := strictjson.Parse(content)
	if err != nil {
		return nil, err
	}
	value := `"` + stamp.Second(now).Format(time.RFC3339) + `"`
	return object.Replace("last_heartbeat_at", []byte(value)), nil
}
