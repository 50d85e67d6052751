package rpc

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"lockfs/test/fuzzing"
)

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	for _, h := range []head{
		{}, {number: 7, kind: echo, wait: time.Second}, {number: 1<<64 - 1, kind: 255, wait: (1<<32 - 1) * time.Millisecond},
	} {
		for _, size := range []int{0, 1, atOnce, 3 * atOnce} {
			text := wrapperspb.String(strings.Repeat("x", size))
			written, err := encode(h, text)
			require.NoError(t, err)
			from := bufio.NewReader(bytes.NewReader(append(written, "next"...)))
			h.length = len(written) - startSize
			got, err := readHead(from, MaxAnswer)
			require.NoError(t, err)
			require.Equal(t, h, got)
			message, err := readMessage(from, got.length)
			require.NoError(t, err)
			require.Equal(t, written[startSize:], message)
			rest, err := io.ReadAll(from)
			require.NoError(t, err)
			require.Equal(t, "next", string(rest))
		}
	}
	require.Equal(t, uint32(1), milliseconds(1), "it is not told as none")
	require.Equal(t, uint32(0), milliseconds(-time.Second))
	require.Equal(t, uint32(1<<32-1), milliseconds(1<<62))
}

// TestMemoryComesWithTheMessage announces what never comes.
func TestMemoryComesWithTheMessage(t *testing.T) {
	bytesOf := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := readMessage(bufio.NewReader(strings.NewReader("little")), MaxAnswer); err == nil {
				b.Fatal("it was read")
			}
		}
	}).AllocedBytesPerOp()
	require.Less(t, bytesOf, int64(4*atOnce))
}

func FuzzRead(f *testing.F) {
	message, err := encode(head{number: 7, kind: echo, wait: time.Second}, wrapperspb.String("text"))
	require.NoError(f, err)
	f.Add(message)
	f.Add(message[:startSize-1])
	f.Add(message[:startSize+1])
	f.Add([]byte("\xff\xff\xff\xff" + strings.Repeat("x", headSize)))
	fuzzing.Run(f, func(t *testing.T, data []byte) {
		const limit = 1 << 10
		from := bufio.NewReader(bytes.NewReader(data))
		h, err := readHead(from, limit)
		if err != nil {
			return
		}
		require.LessOrEqual(t, h.length, limit)
		message, err := readMessage(from, h.length)
		if err != nil {
			require.ErrorIs(t, err, map[bool]error{true: io.EOF, false: io.ErrUnexpectedEOF}[len(data) == startSize])
			return
		}
		require.Equal(t, data[:startSize+h.length], h.put(append(make([]byte, startSize), message...)), "nothing else means the same")
	})
}
