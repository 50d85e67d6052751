package raftstore

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// UnknownFields are the numbers of the fields of a message, not of those within it, that this program does not know.
func UnknownFields(m protoreflect.Message) []int {
	var numbers []int
	for rest := m.GetUnknown(); len(rest) > 0; {
		number, _, size := protowire.ConsumeField(rest)
		if size < 0 {
			break
		}
		numbers = append(numbers, int(number))
		rest = rest[size:]
	}
	return numbers
}
