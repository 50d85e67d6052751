package tower

import (
	"bytes"
	"encoding/json"
	"os"
)

// AuditLog is a file to which events are appended, one line of JSON each. It is opened for each of them,
// so it can be rotated under a program that runs for long.
type AuditLog struct{ Path string }

// Check tells whether events can be appended, before anything happens that calls for one.
func (a AuditLog) Check() error {
	file, err := a.open()
	if err != nil {
		return err
	}
	return file.Close()
}

// Append writes an event with one write, so that lines of several programs do not mix.
func (a AuditLog) Append(event any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(event); err != nil {
		return err
	}
	file, err := a.open()
	if err != nil {
		return err
	}
	_, err = file.Write(line.Bytes())
	if failed := file.Close(); err == nil {
		err = failed
	}
	return err
}

func (a AuditLog) open() (*os.File, error) {
	return os.OpenFile(a.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}
