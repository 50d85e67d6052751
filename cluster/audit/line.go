package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// NumberKey is the key of the event's number in each line.
const NumberKey = "number"

// Line is an event.
type Line struct {
	Number uint64
	JSON   []byte // object in one line, with Number as [NumberKey]
}

// newer returns the lines after last. It returns an error for lines which Open would not understand.
func newer(lines []Line, last uint64) ([]Line, error) {
	kept := make([]Line, 0, len(lines))
	for _, line := range lines {
		if line.Number <= last {
			continue
		}
		number, err := numberOf(line.JSON)
		switch {
		case err != nil:
			return nil, fmt.Errorf("audit event %d: %w", line.Number, err)
		case number != line.Number:
			return nil, fmt.Errorf("audit event %d says that it is %d", line.Number, number)
		case line.JSON[0] != '{' || bytes.IndexByte(line.JSON, '\n') >= 0:
			return nil, fmt.Errorf("audit event %d is not one line of JSON", line.Number)
		}
		kept = append(kept, line)
		last = line.Number
	}
	return kept, nil
}

func numberOf(line []byte) (uint64, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(string(members[NumberKey]), 10, 64)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("its %q is %q, not the number of an event", NumberKey, members[NumberKey])
	}
	return number, nil
}
