package formats

import (
	"bytes"

	"lockfs/formats/internal/strictjson"
)

// Detect says which format a content is of, by its mark: it says which protocol it follows, whether or not it keeps
// to all of its rules, which [FactsOf] tells. A content that may be half of one is of none. It takes time linear in the
// length of the content, whatever that is.
func Detect(content []byte) Format {
	if bytes.HasPrefix(bytes.TrimLeft(content, " \t\r\n"), []byte("{")) {
		if object, err := strictjson.Scan(content); err == nil {
			return formatOf(object)
		}
	}
	for i := range kinds {
		if kinds[i].inText != nil && kinds[i].inText(content) {
			return kinds[i].format
		}
	}
	return None
}

// formatOf lets the first format that recognises the members decide.
func formatOf(object *strictjson.Object) Format {
	for i := range kinds {
		if kinds[i].inObject != nil && kinds[i].inObject(object) {
			return kinds[i].format
		}
	}
	return None
}
