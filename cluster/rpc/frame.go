package rpc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
)

// Preface begins a connection of this protocol and version.
const Preface = "LOCKFS3\n"

// Limits of a message.
const (
	MaxRequest = 1 << 20  // bytes: a file's content and overhead
	MaxAnswer  = 16 << 20 // bytes
)

const (
	lengthSize = 4
	headSize   = 8 + 1 + 4 // number, kind, wait
	startSize  = lengthSize + headSize
)

// deadAfter is how long sent data may stay unacknowledged.
const deadAfter = 3 * time.Second

// frameTime limits the time for the rest of a frame.
const frameTime = 10 * time.Second

// Kinds of frames besides methods.
const (
	answered byte = 0   // of a reply
	ping     byte = 255 // of a request: checks the connection
)

// ofConnection is the number of a [Refusal] of all calls of a connection.
const ofConnection = 0

// detourFlag marks the kind of a request frame with a clusterpb.Detour.
const detourFlag byte = 0x80

// atOnce is the memory allocated for a message before it arrives.
const atOnce = 64 << 10

// errFrame means: the data is not a frame.
var errFrame = errors.New("not a frame")

// head is a frame without its message.
type head struct {
	number uint64
	kind   byte
	wait   time.Duration // in milliseconds
	length int           // of the message
}

// method returns the method of a request, in a detour or not.
func (h head) method() byte {
	if h.kind == ping {
		return ping
	}
	return h.kind &^ detourFlag
}

// encode returns a whole frame, for a single write.
func encode(h head, message proto.Message) ([]byte, error) {
	buffer := make([]byte, startSize, startSize+proto.Size(message))
	buffer, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(buffer, message)
	if err != nil {
		return nil, err
	}
	return h.put(buffer), nil
}

// encodeBare returns a frame without a message.
func encodeBare(h head) []byte { return h.put(make([]byte, startSize)) }

// put writes a head in front of the message in the buffer.
func (h head) put(buffer []byte) []byte {
	binary.BigEndian.PutUint32(buffer, uint32(len(buffer)-lengthSize))
	binary.BigEndian.PutUint64(buffer[lengthSize:], h.number)
	buffer[lengthSize+8] = h.kind
	binary.BigEndian.PutUint32(buffer[lengthSize+9:], milliseconds(h.wait))
	return buffer
}

// milliseconds rounds up, so a remaining wait is never 0.
func milliseconds(wait time.Duration) uint32 {
	up := (max(wait, 0) + time.Millisecond - 1) / time.Millisecond
	return uint32(min(up, math.MaxUint32))
}

// readHead reads the head of the next frame, with a message of at most limit bytes.
func readHead(from *bufio.Reader, limit int) (head, error) {
	var start [startSize]byte
	if _, err := io.ReadFull(from, start[:]); err != nil {
		return head{}, err
	}
	length := int64(binary.BigEndian.Uint32(start[:])) - headSize
	if length < 0 || length > int64(limit) {
		return head{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", errFrame, length, limit)
	}
	return head{
		number: binary.BigEndian.Uint64(start[lengthSize:]),
		kind:   start[lengthSize+8],
		wait:   time.Duration(binary.BigEndian.Uint32(start[lengthSize+9:])) * time.Millisecond,
		length: int(length),
	}, nil
}

// readMessage reads the message after a head.
func readMessage(from *bufio.Reader, length int) ([]byte, error) {
	if length <= atOnce {
		message := make([]byte, length)
		_, err := io.ReadFull(from, message)
		return message, err
	}
	message := bytes.NewBuffer(make([]byte, 0, atOnce))
	_, err := io.CopyN(message, from, int64(length))
	return message.Bytes(), err
}
