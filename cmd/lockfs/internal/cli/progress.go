package cli

import (
	"fmt"
	"io"
	"io/fs"
	"time"
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
