package codec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/checksum"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// messagePlan is which fields of an encoded message this program knows. What it does not know can be at any depth, and to
// leave that out would be to do something else than what was said.
type messagePlan struct {
	name   string
	fields []fieldPlan // by number
}

type fieldPlan struct {
	isKnown bool
	wasHere bool   // in an earlier version
	since   uint32 // the version that has added it; 0: the first
	wire    protowire.Type
	packed  bool                              // many may also come in one, as bytes
	below   *messagePlan                      // of a message
	values  protoreflect.EnumValueDescriptors // of an enumeration
}

var (
	plans       = make(map[protoreflect.FullName]*messagePlan)
	commandPlan = planOf(new(storepb.Command).ProtoReflect().Descriptor())
	_           = planOf(new(storepb.Query).ProtoReflect().Descriptor()) // for CheckMaySend
	recordPlan  = planOf(new(storepb.Record).ProtoReflect().Descriptor())
	headerPlan  = planOf(new(storepb.SnapshotHeader).ProtoReflect().Descriptor())
)

func planOf(of protoreflect.MessageDescriptor) *messagePlan {
	if p, found := plans[of.FullName()]; found {
		return p
	}
	p := &messagePlan{name: string(of.Name())}
	plans[of.FullName()] = p
	for i := range of.ReservedRanges().Len() {
		for number := of.ReservedRanges().Get(i)[0]; number < of.ReservedRanges().Get(i)[1]; number++ {
			p.grow(number)
			p.fields[number].wasHere = true
		}
	}
	for i := range of.Fields().Len() {
		field := of.Fields().Get(i)
		f := fieldPlan{wire: wireTypes[field.Kind()], packed: field.IsPacked(), since: since[field.FullName()]}
		f.isKnown = f.since <= version.Newest
		switch field.Kind() {
		case protoreflect.MessageKind:
			f.below = planOf(field.Message())
		case protoreflect.EnumKind:
			f.values = field.Enum().Values()
		}
		p.grow(field.Number())
		p.fields[field.Number()] = f
	}
	return p
}

func (p *messagePlan) grow(number protowire.Number) {
	for len(p.fields) <= int(number) {
		p.fields = append(p.fields, fieldPlan{})
	}
}

// wireTypes are those of the kinds that store.proto has; the others are 0, a varint.
var wireTypes = map[protoreflect.Kind]protowire.Type{
	protoreflect.MessageKind: protowire.BytesType, protoreflect.BytesKind: protowire.BytesType, protoreflect.StringKind: protowire.BytesType,
}

// check answers ErrNewer if an encoded message has a part that is not known, ErrOlder if it is not any more, and ErrCorrupt if it is none.
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

// CheckKnown answers ErrNewer or ErrOlder unless this program knows all of an encoded command, and cmd, which is the same, has an operation.
func CheckKnown(data []byte, cmd *storepb.Command) error {
	if err := commandPlan.check(data[checksum.Size:]); err != nil {
		return err
	}
	if cmd.GetOp().GetOp() == nil {
		return fmt.Errorf("a command without an operation: %w", ErrNewer)
	}
	return nil
}

// CheckHeader answers ErrNewer or ErrOlder unless this program knows all of the encoded header of a snapshot.
func CheckHeader(data []byte) error { return headerPlan.check(data) }

// CheckRecord answers ErrNewer or ErrOlder unless this program knows all of an encoded record of a snapshot.
func CheckRecord(data []byte) error { return recordPlan.check(data) }

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
