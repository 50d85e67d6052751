package cli

import (
	"encoding/json"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/lockjson"
)

// PrintJSON prints a value as indented JSON without terminal control characters.
func PrintJSON(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	return printEscaped(w, text, err)
}

// PrintJSONLine prints a value as one line of JSON without terminal control characters.
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

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
