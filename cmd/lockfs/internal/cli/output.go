package cli

import (
	"encoding/json"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// PrintJSON prints a value as JSON, indented.
func PrintJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
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
