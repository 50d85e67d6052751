package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"lockfs/formats/pause"
)

// Progress returns a function to show the progress of a transfer longer than a second; nil without a
// terminal.
func Progress(to io.Writer) func(done, all int64) {
	if !IsTerminal(to) {
		return nil
	}
	return progress(to, time.Now().Add(patience), time.Now)
}

func progress(to io.Writer, from time.Time, now func() time.Time) func(done, all int64) {
	shown := int64(-1) // percent
	return func(done, all int64) {
		percent, end := done*100/max(all, 1), ""
		if percent == shown || now().Before(from) {
			return
		}
		shown = percent
		if done == all {
			end = "\n"
		}
		fmt.Fprintf(to, "\r%s of %s (%d%%)  %s", SizeText(uint64(done)), SizeText(uint64(all)), percent, end)
	}
}

// ReadWithProgress reports the progress of reading a file to a function, unless the file has no size.
func ReadWithProgress(file fs.File, progress func(done, all int64)) io.Reader {
	info, err := file.Stat()
	if err != nil || progress == nil || !info.Mode().IsRegular() {
		return file
	}
	return &progressReader{file: file, all: info.Size(), progress: progress}
}

type progressReader struct {
	file      fs.File
	done, all int64
	progress  func(done, all int64)
}

func (r *progressReader) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	r.done += int64(n)
	r.progress(min(r.done, r.all), r.all)
	return n, err
}

// patience is the delay before a command prints its wait.
const patience = time.Second

// Waiting prints a message on a terminal if the command takes longer than a second. The caller calls over at
// the end.
func Waiting(w io.Writer, format string, args ...any) (over func()) {
	if !IsTerminal(w) {
		return func() {}
	}
	return waiting(w, patience, fmt.Sprintf(format, args...))
}

func waiting(w io.Writer, patience time.Duration, what string) (over func()) {
	told := make(chan struct{})
	timer := time.AfterFunc(patience, func() {
		defer close(told)
		fmt.Fprintf(w, "lockfs: %s ...\n", what)
	})
	return func() {
		if !timer.Stop() {
			<-told // not within later output
		}
	}
}

// WaitingFor is Waiting with a message that is updated each second. over ends the context of howFar.
func WaitingFor(ctx context.Context, w io.Writer, howFar func(context.Context) string) (over func()) {
	if !IsTerminal(w) {
		return func() {}
	}
	return waitingFor(ctx, w, patience, howFar)
}

func waitingFor(ctx context.Context, w io.Writer, interval time.Duration, howFar func(context.Context) string) (over func()) {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		shown := ""
		for pause.For(ctx, interval) == nil {
			line := "lockfs: " + howFar(ctx)
			if ctx.Err() != nil {
				break
			}
			fmt.Fprintf(w, "\r%s%s", line, strings.Repeat(" ", max(0, len(shown)-len(line))))
			shown = line
		}
		if shown != "" {
			fmt.Fprintln(w)
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}
