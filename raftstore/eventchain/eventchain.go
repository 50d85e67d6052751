// Package eventchain defines the hash of an event. Each event has the hash of the event before it. So a
// reader with one trusted event can detect whether an earlier event was changed, left out or moved.
//
// The hash is the SHA-256 of the content of a line of the audit trail (package lockjson), not of its form:
// programs of all versions must agree, whatever their JSON. It covers all fields in the order of [Hash]. A
// number is eight bytes, the highest first. A text is its length and its bytes, in UTF-8. An optional field
// follows a number, 1 if it is present and 0 if not. A later version may add fields at the end that are
// hashed only if not empty.
//
// A chain begins with the first event of a cluster, and again if a cluster continues a lost one (the event
// cluster_begun).
package eventchain

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"unicode/utf8"

	"lockfs/raftstore/storepb"
)

// Size is the size of a hash in bytes.
const Size = sha256.Size

// Hash returns the correct value of Event.Hash.
func Hash(e *storepb.Event) []byte {
	d := digest{sha256.New()}
	d.numbers(uint64(len(e.GetBefore())))
	_, _ = d.Write(e.GetBefore())
	d.numbers(e.GetNumber(), e.GetIndex(), uint64(e.GetTime()))
	d.text(e.GetEvent())
	d.text(string(e.GetPath()))
	d.numbers(e.GetParent(), e.GetToken(), uint64(e.GetAcquired()))
	d.holder(e)
	if by := e.GetBy(); d.is(by != nil) {
		d.text(by.GetHost())
		d.numbers(uint64(by.GetPid()), uint64(by.GetUid()))
	}
	d.text(e.GetReason())
	d.text(e.GetRequest())
	if previous := e.GetPrevious(); d.is(previous != nil) {
		d.numbers(previous.GetToken())
		d.holder(previous)
	}
	d.text(e.GetPreviousHash())
	d.text(e.GetCluster())
	return d.Sum(nil)
}

type digest struct{ hash.Hash }

func (d digest) numbers(numbers ...uint64) {
	for _, n := range numbers {
		var bytes [8]byte
		binary.BigEndian.PutUint64(bytes[:], n)
		_, _ = d.Write(bytes[:]) // never fails
	}
}

// text replaces each byte of invalid UTF-8 by U+FFFD, as JSON does.
func (d digest) text(s string) {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	d.numbers(uint64(len(s)))
	_, _ = d.Write([]byte(s))
}

// is hashes whether an optional field is present.
func (d digest) is(there bool) bool {
	if there {
		d.numbers(1)
	} else {
		d.numbers(0)
	}
	return there
}

func (d digest) holder(e *storepb.Event) {
	d.text(e.GetFormat())
	d.text(e.GetHolder())
	d.text(e.GetHost())
	d.numbers(uint64(e.GetPid()))
}
