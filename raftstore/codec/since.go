package codec

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/checksum"
	"lockfs/raftstore/version"
)

// ErrNotYet says that a command has a part which not all members of the cluster know yet.
var ErrNotYet = errors.New("not all servers of the cluster know it yet: update the others, and try again")

// since is what a version after the first has added to a command, by the full names of fields, also those of operations, and of
// values of enumerations. Who adds something to store.proto says here since when.
var since = map[protoreflect.FullName]uint32{}

// CheckVersion answers ErrNotYet if an encoded command, all of which this program knows, has a part that a later version than that of
// the cluster has added.
func CheckVersion(data []byte, of uint32) error {
	if of >= version.Newest {
		return nil
	}
	return commandPlan.checkVersion(data[checksum.Size:], of)
}

func (p *messagePlan) checkVersion(data []byte, of uint32) error {
	for len(data) > 0 {
		number, wire, size := protowire.ConsumeTag(data)
		if size < 0 {
			return fmt.Errorf("%s: %w: %w", p.name, ErrCorrupt, protowire.ParseError(size))
		}
		data = data[size:]
		if size = protowire.ConsumeFieldValue(number, wire, data); size < 0 {
			return fmt.Errorf("%s: %w: %w", p.name, ErrCorrupt, protowire.ParseError(size))
		}
		field := &p.fields[number]
		if field.since > of {
			return fmt.Errorf("field %d of %s is of version %d, and the cluster runs at version %d: %w", number, p.name, field.since, of, ErrNotYet)
		}
		switch {
		case field.below != nil:
			content, _ := protowire.ConsumeBytes(data[:size])
			if err := field.below.checkVersion(content, of); err != nil {
				return err
			}
		case field.values != nil:
			value, _ := protowire.ConsumeVarint(data[:size])
			name := field.values.ByNumber(protoreflect.EnumNumber(int32(value))).FullName()
			if since[name] > of {
				return fmt.Errorf("%s is of version %d, and the cluster runs at version %d: %w", name, since[name], of, ErrNotYet)
			}
		}
		data = data[size:]
	}
	return nil
}
