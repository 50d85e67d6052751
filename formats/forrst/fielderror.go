package forrst

import (
	"errors"

	"lockfs/formats/lockfact"
)

// within prefixes the field of an error with its member: "value" in "ttl" becomes "ttl.value".
func within(member string, err error) error {
	var field *lockfact.FieldError
	if errors.As(err, &field) {
		return &lockfact.FieldError{Field: member + "." + field.Field, Problem: field.Problem}
	}
	return &lockfact.FieldError{Field: member, Problem: err.Error()}
}
