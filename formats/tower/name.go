package tower

import (
	"fmt"
	"regexp"
	"strings"

	"lockfs/formats/lockfact"
)

// Limits of names. maxRequestID leaves room for the temporary file of section 4.2 in a file name of
// 255 bytes.
const (
	maxName      = 128
	maxRequestID = 255 - maxName - len(".lock.") - len(".tmp")
)

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

// ValidateRequestID checks a request id, which section 12.2 wants validated and no section defines. It
// becomes part of a file name, so it is 1 to 117 of [A-Za-z0-9._-] and begins with a letter or digit.
func ValidateRequestID(id string) error {
	problem := ""
	switch {
	case id == "":
		problem = "is required"
	case len(id) > maxRequestID:
		problem = fmt.Sprintf("has %d characters, at most %d are allowed", len(id), maxRequestID)
	case strings.ContainsFunc(id, notInRequestID) || strings.ContainsRune("._-", rune(id[0])):
		problem = "must contain only letters, digits, ., _ and -, and begin with a letter or digit"
	default:
		return nil
	}
	return &lockfact.FieldError{Field: "request_id", Problem: problem}
}

func notInRequestID(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return r != '.' && r != '_' && r != '-'
}

// FileName is the name of the lock's file in the lock directory (section 2.3).
func FileName(lockName string) string { return lockName + ".lock" }

// TempName is the name of the file that a request prepares before it renames it to the lock's
// (section 4.2, method 2).
func TempName(lockName, requestID string) string {
	return FileName(lockName) + "." + requestID + ".tmp"
}

// HeartbeatTempName is the name of the file that replaces the lock's at a heartbeat (section 5.3).
func HeartbeatTempName(lockName string) string { return FileName(lockName) + ".heartbeat.tmp" }

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
