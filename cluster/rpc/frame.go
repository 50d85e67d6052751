package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"
)

// Preface tells these connections from others on the same address.
const Preface = "LOCKFS1\n"

const (
	lengthSize = 4
	headSize   = 8 + 1 // number and method
)

// What an answer has in place of a method.
const (
	answered byte = iota
	refused
)

// errFrame is what no frame begins with.
var errFrame = errors.New("not a frame")

type frame struct {
	number  uint64
	method  byte
	message []byte
}

// encode gives a whole frame, so that it takes one write.
func encode(number uint64, method byte, message proto.Message) ([]byte, error) {
	buffer := make([]byte, lengthSize+headSize, lengthSize+headSize+proto.Size(message))
	buffer, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(buffer, message)
	if err != nil {
		return nil, err
	}
	return head(buffer, number, method), nil
}

// encodeError is the answer to a call that has none.
func encodeError(number uint64, problem string) []byte {
	return head(append(make([]byte, lengthSize+headSize), problem...), number, refused)
}

func head(buffer []byte, number uint64, method byte) []byte {
	binary.BigEndian.PutUint32(buffer, uint32(len(buffer)-lengthSize))
	binary.BigEndian.PutUint64(buffer[lengthSize:], number)
	buffer[lengthSize+8] = method
	return buffer
}

// read answers the next frame, whose message is the caller's to keep. Over limit bytes it is an error.
func read(from *bufio.Reader, limit int) (frame, error) {
	var start [lengthSize + headSize]byte
	if _, err := io.ReadFull(from, start[:]); err != nil {
		return frame{}, err
	}
	length := int(binary.BigEndian.Uint32(start[:])) - headSize
	if length < 0 || length > limit {
		return frame{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", errFrame, length, limit)
	}
	f := frame{
		number: binary.BigEndian.Uint64(start[lengthSize:]), method: start[lengthSize+8], message: make([]byte, length),
	}
	_, err := io.ReadFull(from, f.message)
	return f, err
}
