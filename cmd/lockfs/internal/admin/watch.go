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

// watchInterval is how often locks are listed anew that are watched. Whoever looks is a person.
const watchInterval = time.Second

// watchLocks lists locks again whenever they are others than before, until ctx ends: on a terminal in the place of what was there, elsewhere
// one after the other, as lines of JSON if that is wanted. A cluster that does not answer is waited for.
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
				fmt.Fprintf(notices, "lockfs: no answer yet, trying on: %v\n", err)
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

// clearScreen goes to the top left of a terminal, and clears what is below.
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

// withoutAges makes locks equal that differ by nothing but the time, or were renewed.
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
