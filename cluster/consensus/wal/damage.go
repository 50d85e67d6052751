package wal

import "fmt"

// Damage says that a file is not what was once written to it.
type Damage struct {
	Path string
	Err  error
}

// Error says what is wrong.
func (d *Damage) Error() string { return fmt.Sprintf("%s: %v", d.Path, d.Err) }

// Unwrap is what is wrong.
func (d *Damage) Unwrap() error { return d.Err }
