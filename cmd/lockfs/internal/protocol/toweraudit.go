package protocol

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"lockfs/formats/tower"
)

// auditor writes events to a file, if one is given. A failed write does not undo the event.
type auditor struct {
	path    string
	warn    io.Writer
	offered bool // the command has --audit-log
}

func (a *auditor) add(flags *pflag.FlagSet) {
	a.offered = true
	flags.StringVar(&a.path, "audit-log", "", "append events to this file, a line of JSON each")
}

// check must be called before anything changes.
func (a *auditor) check(warn io.Writer) error {
	a.warn = warn
	if a.path == "" {
		return nil
	}
	if err := (tower.AuditLog{Path: a.path}).Check(); err != nil {
		return fmt.Errorf("--audit-log: %w", err)
	}
	return nil
}

// none warns of a lock without events. A lock with a token is on a mount of lockfs, which keeps its own
// events.
func (a *auditor) none(token uint64) {
	if a.offered && a.path == "" && token == 0 {
		fmt.Fprintln(a.warn, "lockfs: warning: there is no audit log, so no event says that the lock was taken or is released "+
			"(section 4.3); name one with --audit-log or LOCKFS_AUDIT_LOG")
	}
}

func (a *auditor) emit(events ...any) {
	for _, event := range events {
		if a.path == "" {
			return
		}
		if err := (tower.AuditLog{Path: a.path}).Append(event); err != nil {
			line, _ := json.Marshal(event)
			fmt.Fprintf(a.warn, "lockfs: the audit log could not be written: %v; the event was %s\n", err, line)
		}
	}
}
