package codec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/checksum"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// check returns ErrNewer for an unknown part, ErrOlder for a part of an earlier version, and ErrCorrupt for
// an invalid message.
func (p *messagePlan) check(data []byte) error {
	for len(data) > 0 {
		number, wire, size := protowire.ConsumeTag(data)
		if size < 0 {
			return fmt.Errorf("%s: %w: %w", p.name, ErrCorrupt, protowire.ParseError(size))
		}
		data = data[size:]
		if size = protowire.ConsumeFieldValue(number, wire, data); size < 0 {
			return fmt.Errorf("%s: %w: %w", p.name, ErrCorrupt, protowire.ParseError(size))
		}
		if err := p.checkField(number, wire, data[:size]); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}

func (p *messagePlan) checkField(number protowire.Number, wire protowire.Type, value []byte) error {
	if int64(number) >= int64(len(p.fields)) {
		return fmt.Errorf("field %d of %s: %w", number, p.name, ErrNewer)
	}
	field := &p.fields[number]
	switch {
	case field.wasHere:
		return fmt.Errorf("field %d of %s: %w", number, p.name, ErrOlder)
	case !field.isKnown || wire != field.wire && (!field.packed || wire != protowire.BytesType):
		return fmt.Errorf("field %d of %s: %w", number, p.name, ErrNewer)
	case field.below != nil:
		content, _ := protowire.ConsumeBytes(value)
		return field.below.check(content)
	case field.values != nil:
		value, _ := protowire.ConsumeVarint(value)
		if known := field.values.ByNumber(protoreflect.EnumNumber(int32(value))); known == nil || since[known.FullName()] > version.Newest {
			return fmt.Errorf("%d in field %d of %s: %w", value, number, p.name, ErrNewer)
		}
	}
	return nil
}

// CheckKnown returns ErrNewer or ErrOlder unless this program knows all parts of an encoded command. cmd is
// the decoded command and must have an operation.
func CheckKnown(data []byte, cmd *storepb.Command) error {
	if err := commandPlan.check(data[checksum.Size:]); err != nil {
		return err
	}
	if cmd.GetOp().GetOp() == nil {
		return fmt.Errorf("a command without an operation: %w", ErrNewer)
	}
	return nil
}

// CheckHeader returns ErrNewer or ErrOlder unless this program knows all parts of a snapshot's encoded
// header.
func CheckHeader(data []byte) error { return headerPlan.check(data) }

// CheckRecord returns ErrNewer or ErrOlder unless this program knows all parts of a snapshot's encoded
// record.
func CheckRecord(data []byte) error { return recordPlan.check(data) }

// UnknownFields returns the numbers of a message's unknown fields, without those of nested messages.
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
