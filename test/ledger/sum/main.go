// Command sum adds up the runs of a ledger, and prints tables in Markdown.
//
//	go run ./test/ledger/sum [-write FILE] [LEDGER]
//	go run ./test/ledger/sum -never [LEDGER]
//	go run ./test/ledger/sum -fuzzed -began TIME < RESULTS
//
// With -write it writes the tables to a file. With -never it prints the pairs of a fault and a moment that no
// soak has had. With -fuzzed it adds a run of fuzzing (ledger.Variable), begun at a time in seconds since
// 1970: a line for each parser, with the number of inputs, its name, and the finding, if any.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"lockfs/test/faultinjection"
	"lockfs/test/ledger"
)

// usual is where runs are noted that count.
const usual = "test/soakrecord/ledger.jsonl"

// cutKinds are what the power is cut in by TestPowerCuts in cluster/sim.
var cutKinds = []string{"entries", "votes", "snapshots"}

func main() {
	write := flag.String("write", "", "write the tables to this `file`")
	never := flag.Bool("never", false, "print the pairs that never came")
	fuzzed := flag.Bool("fuzzed", false, "add a run of fuzzing")
	began := flag.Int64("began", 0, "when that began, in seconds since 1970")
	flag.Parse()
	path := cmp.Or(flag.Arg(0), usual)
	err := error(nil)
	if *fuzzed {
		err = addFuzzed(os.Stdin, time.Unix(*began, 0))
	} else {
		err = show(path, *write, *never)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sum:", err)
		os.Exit(1)
	}
}

func show(path, write string, never bool) error {
	all, err := ledger.Read(path)
	if err != nil {
		return err
	}
	if never {
		fmt.Print(ledger.Never(all, faultinjection.Kinds(), faultinjection.Moments))
		return nil
	}
	tables := ledger.Tables(all, cutKinds, faultinjection.Kinds(), faultinjection.Moments)
	if write != "" {
		return os.WriteFile(write, []byte(tables+"\n"), 0o644)
	}
	fmt.Print(tables)
	return nil
}

func addFuzzed(results io.Reader, began time.Time) error {
	e := ledger.New(ledger.Fuzz)
	e.Began = began.UTC()
	lines := bufio.NewScanner(results)
	for lines.Scan() {
		var inputs int64
		count, rest, _ := strings.Cut(lines.Text(), "\t")
		if _, err := fmt.Sscan(count, &inputs); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		parser, found, _ := strings.Cut(rest, "\t")
		e.Counts[parser] += inputs
		e.Operations += inputs
		if found != "" {
			e.Findings = append(e.Findings, parser+": "+found)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return e.Add()
}
