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

// Preface tells these connections from others, and from those of versions that do not understand each other.
const Preface = "LOCKFS3\n"

// What one message may have.
const (
	MaxRequest = 1 << 20  // bytes: a file's content, with room for the rest
	MaxAnswer  = 16 << 20 // bytes
)

const (
	lengthSize = 4
	headSize   = 8 + 1 + 4 // number, kind, wait
	startSize  = lengthSize + headSize
)

// deadAfter is how long what was sent may stay unacknowledged by the other host.
const deadAfter = 3 * time.Second

// frameTime is how long the rest of a frame may take.
const frameTime = 10 * time.Second

// Kinds of frames that are no methods.
const (
	answered byte = 0   // of an answer
	ping     byte = 255 // of a request: is anybody there?
)

// ofConnection is the number of no call: a [Refusal] with it is of all that the connection might ask.
const ofConnection = 0

// detourFlag is part of the kind of a request frame whose message is a clusterpb.Detour.
const detourFlag byte = 0x80

// atOnce is how much of a message there is memory for before any of it has come.
const atOnce = 64 << 10

// errFrame is what no frame begins with.
var errFrame = errors.New("not a frame")

// head is a frame without its message.
type head struct {
	number uint64
	kind   byte
	wait   time.Duration // to the millisecond
	length int           // of the message
}

// method is that of a request, in a detour or not.
func (h head) method() byte {
	if h.kind == ping {
		return ping
	}
	return h.kind &^ detourFlag
}

// encode gives a whole frame, so that it takes one write.
func encode(h head, message proto.Message) ([]byte, error) {
	buffer := make([]byte, startSize, startSize+proto.Size(message))
	buffer, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(buffer, message)
	if err != nil {
		return nil, err
	}
	return h.put(buffer), nil
}

// encodeBare gives a frame without a message.
func encodeBare(h head) []byte { return h.put(make([]byte, startSize)) }

// put writes a head in front of the message that is in the buffer.
func (h head) put(buffer []byte) []byte {
	binary.BigEndian.PutUint32(buffer, uint32(len(buffer)-lengthSize))
	binary.BigEndian.PutUint64(buffer[lengthSize:], h.number)
	buffer[lengthSize+8] = h.kind
	binary.BigEndian.PutUint32(buffer[lengthSize+9:], milliseconds(h.wait))
	return buffer
}

// milliseconds rounds up: what is left of a wait is never told as none.
func milliseconds(wait time.Duration) uint32 {
	up := (max(wait, 0) + time.Millisecond - 1) / time.Millisecond
	return uint32(min(up, math.MaxUint32))
}

// readHead answers the head of the next frame. It is an error if more than limit bytes are announced.
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

// readMessage answers the message after a head, which is the caller's to keep.
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
