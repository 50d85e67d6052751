package formats

import (
	"bytes"

	"lockfs/formats/internal/strictjson"
)

// Detect returns the format of a content by its mark. The content may break other rules of the format;
// [FactsOf] checks them. A content that may be half-written has no format. Detect takes time linear in the
// length of any content.
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

// formatOf returns the first format that recognizes the members.
func formatOf(object *strictjson.Object) Format {
	for i := range kinds {
		if kinds[i].inObject != nil && kinds[i].inObject(object) {
			return kinds[i].format
		}
	}
	return None
}
