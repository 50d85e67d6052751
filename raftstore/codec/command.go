package codec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/checksum"
	"lockfs/raftstore/storepb"
)

// ErrCorrupt reports a damaged log entry or snapshot.
var ErrCorrupt = errors.New("corrupt")

// ErrNewer reports a log entry, a snapshot or a file with parts unknown to this program.
var ErrNewer = errors.New("a newer version wrote it: update this node")

// ErrOlder reports a log entry or a snapshot of a version this program does not read any more.
var ErrOlder = errors.New("an older version wrote it, which this one does not read: start that version again")

// EncodeCommand encodes a command for the log: a CRC-32C of the message, big endian, then the message. The
// log's files have no checksums of entries.
func EncodeCommand(cmd *storepb.Command) ([]byte, error) {
	data := make([]byte, checksum.Size, checksum.Size+proto.Size(cmd))
	data, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(data, cmd)
	if err != nil {
		return nil, fmt.Errorf("encode command: %w", err)
	}
	binary.BigEndian.PutUint32(data, checksum.Of(data[checksum.Size:]))
	return data, nil
}

// DecodeCommand decodes a command of EncodeCommand. The error is ErrCorrupt.
func DecodeCommand(data []byte) (*storepb.Command, error) {
	if err := CheckCommand(data); err != nil {
		return nil, err
	}
	cmd := new(storepb.Command)
	if err := proto.Unmarshal(data[checksum.Size:], cmd); err != nil {
		return nil, fmt.Errorf("command: %w: %w", ErrCorrupt, err)
	}
	return cmd, nil
}

// CheckCommand verifies the checksum of an encoded command. The error is ErrCorrupt.
func CheckCommand(data []byte) error {
	if len(data) < checksum.Size {
		return fmt.Errorf("command of %d bytes: %w", len(data), ErrCorrupt)
	}
	if checksum.Of(data[checksum.Size:]) != binary.BigEndian.Uint32(data) {
		return fmt.Errorf("command of %d bytes: checksum differs: %w", len(data), ErrCorrupt)
	}
	return nil
}
