package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"lockfs/raftstore/codec"
)

const magic = "lockfs-backup\n"

// formatVersion changes when older programs could misread newer files.
const formatVersion = 1

// maxHeader limits the size of the header's line.
const maxHeader = 64 << 10

// Header describes a backup.
type Header struct {
	Version     int       `json:"version"`
	Cluster     string    `json:"cluster,omitempty"` // id; empty: none
	Node        string    `json:"node"`              // name of the server which made the backup
	Program     string    `json:"program"`           // version of lockfs on this server
	Made        time.Time `json:"made"`              // on this server's clock
	Index       uint64    `json:"index"`             // of the last command in the state
	Term        uint64    `json:"term"`              // term of the server
	ClusterTime time.Time `json:"cluster_time"`      // of the last command
	Length      int64     `json:"length"`            // bytes of the snapshot
}

func (h *Header) write(w io.Writer) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", magic, line)
	return err
}

// ErrDamaged means: a file is incomplete, or its contents have changed.
var ErrDamaged = errors.New("the backup is damaged, or not complete")

// readHeader also writes the header's bytes to sum.
func readHeader(r *bufio.Reader, sum io.Writer) (*Header, error) {
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(r, begin); err != nil && !isEnd(err) {
		return nil, err
	}
	if string(begin) != magic {
		return nil, errors.New("it is not a lockfs backup; `lockfs backup` writes one")
	}
	var line []byte
	for len(line) == 0 || line[len(line)-1] != '\n' {
		b, err := r.ReadByte()
		if isEnd(err) || len(line) == maxHeader {
			return nil, ErrDamaged
		}
		if err != nil {
			return nil, err
		}
		line = append(line, b)
	}
	_, _ = sum.Write(append(begin, line...)) // never fails (hash.Hash)
	var only struct{ Version int }
	if json.Unmarshal(line, &only) == nil && only.Version > formatVersion {
		return nil, fmt.Errorf("version %d: %w", only.Version, codec.ErrNewer)
	}
	h := new(Header)
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(h); err != nil || h.Version != formatVersion || h.Length <= 0 {
		return nil, ErrDamaged
	}
	return h, nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Size returns the length of a backup from its first bytes; 0: they have no complete header.
func Size(begin []byte) int64 {
	header := new(bytes.Buffer)
	h, err := readHeader(bufio.NewReader(bytes.NewReader(begin)), header)
	if err != nil {
		return 0
	}
	return int64(header.Len()) + h.Length + sha256.Size
}
