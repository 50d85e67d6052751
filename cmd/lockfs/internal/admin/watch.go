package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/pause"
	"lockfs/raftstore/lockjson"
)

// watchInterval is the interval between two lists of locks.
const watchInterval = time.Second

// watchLocks prints the locks after each change until ctx ends: in place on a terminal, else one list after
// the other, with asJSON one line each. It retries while the cluster does not answer.
func watchLocks(ctx context.Context, out io.Writer, notices io.Writer, asJSON bool, list func() ([]lockjson.Lock, error)) error {
	var shown []byte
	silent := false
	for ; ctx.Err() == nil; _ = pause.For(ctx, watchInterval) {
		locks, err := list()
		if isRefused(err) || err != nil && shown == nil && !silent {
			return err
		}
		if err != nil {
			if !silent && ctx.Err() == nil {
				fmt.Fprintf(notices, "lockfs: no reply yet, retrying: %v\n", err)
			}
			silent = true
			continue
		}
		silent = false
		state, err := json.Marshal(withoutAges(locks))
		if err != nil {
			return err
		}
		if shown != nil && bytes.Equal(state, shown) {
			continue
		}
		shown = state
		if err := printWatched(out, asJSON, locks); err != nil {
			return err
		}
	}
	return nil
}

// clearScreen moves the cursor to the top left, and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

func printWatched(out io.Writer, asJSON bool, locks []lockjson.Lock) error {
	if asJSON {
		return cli.PrintJSONLine(out, locks)
	}
	var text bytes.Buffer
	if cli.IsTerminal(out) {
		text.WriteString(clearScreen)
	}
	fmt.Fprintf(&text, "%s, %d locks\n", time.Now().Format(time.TimeOnly), len(locks))
	if err := printLocks(&text, locks); err != nil {
		return err
	}
	text.WriteByte('\n')
	_, err := out.Write(text.Bytes())
	return err
}

// withoutAges returns the locks without fields that change with time or by renewal.
func withoutAges(locks []lockjson.Lock) []lockjson.Lock {
	same := make([]lockjson.Lock, len(locks))
	for i, l := range locks {
		l.Age, l.Expires = 0, nil
		l.Advisory = append([]lockjson.Advisory(nil), l.Advisory...)
		for j := range l.Advisory {
			l.Advisory[j].Age = 0
		}
		same[i] = l
	}
	return same
}
