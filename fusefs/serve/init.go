package serve

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Init is the handshake at the opening of a connection, which happens once. It is kept as long as the
// connection.
type Init struct {
	Asked    []byte // by the kernel
	Answered []byte
}

// errInit says that a program cannot continue with the handshake of an earlier one.
var errInit = errors.New("this program does not serve a mount as the one before it has agreed upon with the kernel")

// Opened returns the handshake of a connection opened by go-fuse.
func Opened(settings *fuse.InitIn, options *fuse.MountOptions) (*Init, error) {
	asked := *settings
	asked.Opcode = opInit
	asked.Length = uint32(binary.Size(asked))
	message, err := binary.Append(nil, binary.NativeEndian, asked)
	if err != nil {
		return nil, err
	}
	init := &Init{Asked: message}
	init.Answered, err = init.ask(fuse.NewProtocolServer(fuse.NewDefaultRawFileSystem(), options))
	return init, err
}

func (i *Init) ask(protocol *fuse.ProtocolServer) ([]byte, error) {
	out := make([]byte, answerRoom)
	n, status := protocol.HandleRequest([][]byte{bytes.Clone(i.Asked)}, [][]byte{out})
	if !status.Ok() || n == 0 || statusOf(out[:n]) != 0 {
		return nil, errInit
	}
	return out[:n], nil
}

// Fits returns an error if a server with these options cannot continue with this handshake.
func (i *Init) Fits(options *fuse.MountOptions) error {
	return i.tell(fuse.NewProtocolServer(fuse.NewDefaultRawFileSystem(), options))
}

// tell repeats the handshake for a protocol server, and offers only the features agreed upon.
func (i *Init) tell(protocol *fuse.ProtocolServer) error {
	var asked fuse.InitIn
	agreed, err := agreedIn(i.Answered)
	if err == nil {
		_, err = binary.Decode(i.Asked, binary.NativeEndian, &asked)
	}
	if err != nil {
		return errors.Join(errInit, err)
	}
	asked.Flags &= agreed.Flags
	asked.Flags2 &= agreed.Flags2
	message, err := binary.Append(nil, binary.NativeEndian, asked)
	if err != nil {
		return err
	}
	answered, err := (&Init{Asked: message}).ask(protocol)
	if err != nil {
		return err
	}
	ours, err := agreedIn(answered)
	if err != nil || ours.Flags != agreed.Flags || ours.Flags2 != agreed.Flags2 || ours.Minor != agreed.Minor || ours.MaxWrite != agreed.MaxWrite {
		return errors.Join(errInit, err)
	}
	return nil
}

// agreement is the begin of an answer to INIT (struct fuse_init_out).
type agreement struct {
	Major, Minor, MaxReadAhead, Flags  uint32
	MaxBackground, CongestionThreshold uint16
	MaxWrite, TimeGran                 uint32
	MaxPages, MapAlignment             uint16
	Flags2                             uint32
}

func agreedIn(answer []byte) (out agreement, err error) {
	_, err = binary.Decode(answer[min(len(answer), binary.Size(fuse.OutHeader{})):], binary.NativeEndian, &out)
	return out, err
}
