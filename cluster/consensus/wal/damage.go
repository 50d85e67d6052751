package wal

import "fmt"

// Damage is the error for a file with other contents than were written.
type Damage struct {
	Path string
	Err  error
}

// Error returns the path and the cause.
func (d *Damage) Error() string { return fmt.Sprintf("%s: %v", d.Path, d.Err) }

// Unwrap returns the cause.
func (d *Damage) Unwrap() error { return d.Err }
