package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/pause"
	"lockfs/raftstore/lockjson"
)

const (
	// watchInterval is the shortest interval between two lists of locks.
	watchInterval = time.Second
	// longestWatch is the longest: a cluster that does not answer reports no change.
	longestWatch = 15 * time.Second
)

// watchLocks prints the locks after each change until ctx ends: in place on a terminal, else one list after
// the other, with asJSON one line each. It retries while the cluster does not answer. awaitChange returns
// when the locks may have changed.
func watchLocks(
	ctx context.Context, out io.Writer, notices io.Writer, asJSON bool, list func() ([]lockjson.Lock, error),
	awaitChange func(context.Context),
) error {
	var shown []byte
	silent := false
	for ; ctx.Err() == nil; _ = pause.For(ctx, watchInterval) {
		if shown != nil && !silent {
			awaitChange(ctx)
		}
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
	if err := printLocks(&text, locks, time.Now()); err != nil {
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

// mountChanges reports changes of the cluster as a mount hears of them.
type mountChanges struct {
	root    string
	file    *os.File      // nil: it is to be opened
	reading chan struct{} // closed once a read has returned; nil: none is under way
}

// await returns after the next change, after longestWatch, or when ctx ends.
func (c *mountChanges) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longestWatch)
	defer cancel()
	if c.reading == nil {
		reading := make(chan struct{})
		c.reading = reading
		go func() {
			defer close(reading)
			c.read()
		}()
	}
	select {
	case <-c.reading:
		c.reading = nil
	case <-ctx.Done():
	}
}

func (c *mountChanges) read() {
	if c.file == nil {
		file, err := os.Open(filepath.Join(c.root, controlDir, "changes"))
		if err != nil {
			return // the list says why
		}
		c.file = file
	}
	if _, err := c.file.Read(make([]byte, 64)); err != nil {
		_ = c.file.Close()
		c.file = nil
	}
}
