package tower

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockfs/formats/lockfact"
)

// maxName is the length limit of a lock name (section 2.2).
const maxName = 128

// ValidateName checks a lock name against section 2.2: 1 to 128 of [a-z0-9_-], with a letter or a digit
// at both ends. The error is a [lockfact.FieldError] for lock_name.
func ValidateName(name string) error {
	problem := ""
	switch {
	case name == "":
		problem = "is required"
	case len(name) > maxName:
		problem = fmt.Sprintf("has %d characters, at most %d are allowed", len(name), maxName)
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		problem = "must contain only a-z, 0-9, _ and -"
	case strings.Trim(name, "_-") != name:
		problem = "must not start or end with - or _"
	default:
		return nil
	}
	return &lockfact.FieldError{Field: "lock_name", Problem: problem}
}

// ValidateRequestID checks a request id. Section 12.2 demands this, but the specification defines only a
// "unique identifier". Valid ids are not empty, are UTF-8, and have no control characters such as line
// breaks.
func ValidateRequestID(id string) error {
	if id == "" {
		return &lockfact.FieldError{Field: "request_id", Problem: "is required"}
	}
	if err := validateText("request_id", id); err != nil {
		return err
	}
	if strings.ContainsFunc(id, unicode.IsControl) {
		return &lockfact.FieldError{Field: "request_id", Problem: "must not contain control characters"}
	}
	return nil
}

// validateText refuses text changed by JSON.
func validateText(field, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return &lockfact.FieldError{Field: field, Problem: "must be valid UTF-8"}
}

// FileName returns the name of the lock's file in the lock directory (section 2.3).
func FileName(lockName string) string { return lockName + ".lock" }

var placeholder = regexp.MustCompile(`\$\{[^}]*\}?`)

// ResolveName replaces each ${params.x} in an intent's controls.lock by the parameter x, and validates the
// resulting name (sections 2.1 and 2.2). Values are not expanded again. A missing parameter, another kind of
// placeholder and an unclosed one are errors with its name.
func ResolveName(template string, params map[string]string) (string, error) {
	var failed error
	name := placeholder.ReplaceAllStringFunc(template, func(p string) string {
		key, ok := strings.CutPrefix(strings.TrimSuffix(p, "}"), "${params.")
		value, known := params[key]
		if failed == nil && (!ok || key == "" || !strings.HasSuffix(p, "}")) {
			failed = &lockfact.FieldError{Field: "lock", Problem: fmt.Sprintf("%q is not of the form ${params.name}", p)}
		} else if failed == nil && !known {
			failed = &lockfact.FieldError{Field: "lock", Problem: fmt.Sprintf("no parameter %q", key)}
		}
		return value
	})
	if failed != nil {
		return "", failed
	}
	return name, ValidateName(name)
}
