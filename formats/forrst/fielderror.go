package forrst

import (
	"errors"

	"lockfs/formats/lockfact"
)

// within names the member in which an error was found: "ttl" makes of "value" "ttl.value".
func within(member string, err error) error {
	var field *lockfact.FieldError
	if errors.As(err, &field) {
		return &lockfact.FieldError{Field: member + "." + field.Field, Problem: field.Problem}
	}
	return &lockfact.FieldError{Field: member, Problem: err.Error()}
}
