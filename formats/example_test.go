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
	facts := formats.FactsOf(content, written)
	fmt.Println(facts.Holder, facts.StaleAt(now.UnixNano()))
	patient := formats.Rule{StaleAfter: 2 * time.Hour}
	fmt.Println(patient.Govern(facts, 0).StaleAt(now.UnixNano()))
	// Output:
	// semaphore
	// 12345 true
	// false
}
