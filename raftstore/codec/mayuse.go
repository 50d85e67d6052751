package codec

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/checksum"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// ErrNotYet reports a command or query with a part not yet known to the whole cluster.
var ErrNotYet = errors.New("not all servers and mounts of the cluster know it yet: update the others, and try again")

// CheckMayPropose is CheckKnown, and returns ErrNotYet for a command with a part of a later version than the
// cluster's.
func CheckMayPropose(data []byte, cmd *storepb.Command, of uint32) error {
	known := CheckKnown(data, cmd)
	if known == nil && of >= version.Newest {
		return nil
	}
	if err := commandPlan.checkVersion(data[checksum.Size:], of); errors.Is(err, ErrNotYet) {
		return err
	}
	return known
}

// CheckMaySend returns ErrNotYet for a command or query with a part of a later version than the cluster's.
// The request may have parts unknown to this program.
func CheckMaySend(request Request, of uint32) error {
	data, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	err = plans[request.ProtoReflect().Descriptor().FullName()].checkVersion(data, of)
	if !errors.Is(err, ErrNotYet) {
		return nil
	}
	return err
}

// Request is a *storepb.Command, *storepb.Op or *storepb.Query.
type Request interface{ proto.Message }

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
		if int64(number) >= int64(len(p.fields)) {
			return fmt.Errorf("field %d of %s: %w", number, p.name, ErrNewer)
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
			if known := field.values.ByNumber(protoreflect.EnumNumber(int32(value))); known != nil && since[known.FullName()] > of {
				return fmt.Errorf("%s is of version %d, and the cluster runs at version %d: %w", known.FullName(), since[known.FullName()], of, ErrNotYet)
			}
		}
		data = data[size:]
	}
	return nil
}
