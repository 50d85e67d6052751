package tower

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockfs/formats/lockfact"
)

// maxName is the most characters of a lock name (section 2.2).
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

// ValidateRequestID checks a request id, which section 12.2 wants validated and no section defines but as a "unique
// identifier": anything that is not empty, is valid UTF-8 and has no control characters, such as line breaks.
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

// validateText refuses what JSON would replace.
func validateText(field, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return &lockfact.FieldError{Field: field, Problem: "must be valid UTF-8"}
}

// FileName is the name of the lock's file in the lock directory (section 2.3).
func FileName(lockName string) string { return lockName + ".lock" }

var placeholder = regexp.MustCompile(`\$\{[^}]*\}?`)

// ResolveName replaces each ${params.x} in an intent's controls.lock by the parameter x and validates
// the name that results (sections 2.1 and 2.2). A value is never expanded again. A parameter that is
// missing, a placeholder of another kind and one that is not closed are errors that name it.
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
