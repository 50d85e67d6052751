package codec

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// messagePlan lists the known fields of a message.
type messagePlan struct {
	name   string
	fields []fieldPlan // by number
}

type fieldPlan struct {
	isKnown bool
	wasHere bool   // in an earlier version
	since   uint32 // the version of its addition; 0: the first
	wire    protowire.Type
	packed  bool                              // several values may come as bytes
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

// wireTypes are those of the kinds in store.proto; the others are 0, a varint.
var wireTypes = map[protoreflect.Kind]protowire.Type{
	protoreflect.MessageKind: protowire.BytesType, protoreflect.BytesKind: protowire.BytesType, protoreflect.StringKind: protowire.BytesType,
}
