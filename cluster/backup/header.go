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

// formatVersion changes when an older program could misread what a newer one writes.
const formatVersion = 1

// maxHeader bounds the line of the header.
const maxHeader = 64 << 10

// Header says what a backup is of.
type Header struct {
	Version     int       `json:"version"`
	Cluster     string    `json:"cluster,omitempty"` // id; empty: it has none
	Node        string    `json:"node"`              // name of the one that made it
	Program     string    `json:"program"`           // version of that one's lockfs
	Made        time.Time `json:"made"`              // by its clock
	Index       uint64    `json:"index"`             // of the last command in it
	Term        uint64    `json:"term"`              // that its node was in
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

// ErrDamaged says that a file is not what was once written, or not all of it.
var ErrDamaged = errors.New("the backup is damaged, or not complete")

// readHeader also gives sum what it has read.
func readHeader(r *bufio.Reader, sum io.Writer) (*Header, error) {
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(r, begin); err != nil && !isEnd(err) {
		return nil, err
	}
	if string(begin) != magic {
		return nil, errors.New("it is no backup of lockfs; `lockfs backup` makes one")
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

// Size is how long the backup is that begins with some bytes, which have its header; 0 if they have not.
func Size(begin []byte) int64 {
	header := new(bytes.Buffer)
	h, err := readHeader(bufio.NewReader(bytes.NewReader(begin)), header)
	if err != nil {
		return 0
	}
	return int64(header.Len()) + h.Length + sha256.Size
}
