package formats_test

import (
	"fmt"
	"time"

	"lockfs/formats"
)

func Example() {
	content := []byte("pid=12345\ntimestamp=1703520000\n")
	written := formats.Origin{Host: "n1"}
	now := time.Unix(1703524000, 0)

	fmt.Println(formats.Detect(content))
	verdict := formats.Judge(content, now, written, formats.Rule{})
	fmt.Println(verdict.State, "-", verdict.Reason)
	patient := formats.Rule{StaleAfter: 2 * time.Hour}
	fmt.Println(formats.FactsOf(content, written, patient).StaleAt(now.UnixNano()))
	// Output:
	// semaphore
	// stale - taken 4000 s ago, stale timeout 3600 s
	// false
}
