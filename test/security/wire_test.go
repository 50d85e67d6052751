package security

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// What lockfs says on the wire, written anew: a hostile client has no library.

const (
	protocolRaft = "lockfs-raft"
	protocolRPC  = "lockfs-rpc"
	protocolJoin = "lockfs-join"

	rpcPreface  = "LOCKFS3\n"
	raftPreface = "LOCKFSR\n"
)

// Methods.
const (
	methodExecute byte = iota
	methodProbe
	methodKeepAlive
	methodSessions
	methodRemovals
	methodStatus
	methodJoin
	methodRemove
	methodChange
	methodEnroll
)

// Kinds of answers.
const (
	kindAnswered byte = 0
	kindNoMethod byte = 1
	kindNeedsTLS byte = 5
	kindRefused  byte = 7 // a result follows
)

// Result codes.
const (
	codeOK             = 0
	codeInvalid        = 6
	codeNotPermitted   = 10
	codeSessionUnknown = 17
	codeBusy           = 20
	codeTooMany        = 21
)

// A message of protobuf is its fields in their order.
type message []byte

func (m message) number(field protowire.Number, value uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), value)
}

func (m message) bytes(field protowire.Number, value []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), value)
}

func (m message) text(field protowire.Number, value string) message {
	return m.bytes(field, []byte(value))
}

// field answers the first of a number, as it is for bytes and little endian for numbers.
func (m message) field(number protowire.Number) (value []byte, numeric uint64) {
	for rest := []byte(m); len(rest) > 0; {
		found, kind, length := protowire.ConsumeTag(rest)
		if length < 0 {
			return nil, 0
		}
		rest = rest[length:]
		length = protowire.ConsumeFieldValue(found, kind, rest)
		if length < 0 {
			return nil, 0
		}
		if found == number && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(rest)
			return value, 0
		}
		if found == number {
			numeric, _ = protowire.ConsumeVarint(rest)
			return nil, numeric
		}
		rest = rest[length:]
	}
	return nil, 0
}

func (m message) textOf(number protowire.Number) string {
	value, _ := m.field(number)
	return string(value)
}

func (m message) numberOf(number protowire.Number) uint64 {
	_, numeric := m.field(number)
	return numeric
}

func (m message) messageOf(number protowire.Number) message {
	value, _ := m.field(number)
	return value
}

// frame is a call with its message.
func frame(method byte, m message) []byte {
	const head = 8 + 1 + 4
	out := binary.BigEndian.AppendUint32(nil, uint32(head+len(m)))
	out = binary.BigEndian.AppendUint64(out, 1)
	out = append(out, method)
	out = binary.BigEndian.AppendUint32(out, 5000) // milliseconds
	return append(out, m...)
}

// An answer is what a server said to a call.
type answer struct {
	kind    byte
	message message
}

// result is the one in a refusal, or in the answer of a method that has it there.
func (a answer) result(field protowire.Number) message {
	if a.kind == kindRefused {
		return a.message
	}
	return a.message.messageOf(field)
}

func (a answer) String() string { return fmt.Sprintf("kind %d: %q", a.kind, []byte(a.message)) }

func readAnswer(conn net.Conn) (answer, error) {
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	var head [4 + 8 + 1 + 4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return answer{}, err
	}
	length := int64(binary.BigEndian.Uint32(head[:])) - 13
	if length < 0 || length > 16<<20 {
		return answer{}, fmt.Errorf("%d bytes are announced", length)
	}
	text := make([]byte, length)
	_, err := io.ReadFull(conn, text)
	return answer{kind: head[12], message: text}, err
}
