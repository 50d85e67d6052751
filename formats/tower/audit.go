package tower

import (
	"bytes"
	"encoding/json"
	"os"
)

// AuditLog is a file of events, one line of JSON each. Each append opens it, so it can be rotated while
// programs run.
type AuditLog struct{ Path string }

// Check reports whether events can be appended.
func (a AuditLog) Check() error {
	file, err := a.open()
	if err != nil {
		return err
	}
	return file.Close()
}

// Append writes an event in one write, so lines of several programs do not mix.
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
