package cli

import (
	"encoding/json"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/lockjson"
)

// PrintJSON prints a value as indented JSON, without characters that a terminal obeys.
func PrintJSON(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	return printEscaped(w, text, err)
}

// PrintJSONLine prints a value as one line of JSON, without characters that a terminal obeys.
func PrintJSONLine(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	return printEscaped(w, text, err)
}

func printEscaped(w io.Writer, text []byte, err error) error {
	if err == nil {
		_, err = w.Write(append(lockjson.Escape(text), '\n'))
	}
	return err
}

// IsTerminal tells whether a person is likely to read what is written.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
