package tower_test

import (
	"fmt"
	"time"

	"lockfs/formats/tower"
)

func ExampleLock_Stale() {
	content := []byte(`{"lock_version":"v1","lock_name":"nightly","request_id":"req_1","actor":"cron",
		"intent":"backup","intent_version":"1","host_id":"tower-01","pid":7,
		"created_at":"2025-12-18T10:00:00Z","last_heartbeat_at":"2025-12-18T10:15:00Z","ttl_seconds":900}`)
	lock, err := tower.Parse(content)
	fmt.Println(lock.Stale(time.Date(2025, 12, 18, 10, 45, 0, 0, time.UTC)), err)
	// Output: true <nil>
}

func ExampleResolveName() {
	params := map[string]string{"app": "money-tracker", "environment": "production"}
	name, err := tower.ResolveName("${params.app}-${params.environment}", params)
	fmt.Println(name, err)
	// Output: money-tracker-production <nil>
}
