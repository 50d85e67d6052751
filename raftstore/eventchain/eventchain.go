// Package eventchain says what the hash of an event is. Each event has the hash of the one before it, so whoever has an event that he
// trusts knows of all events before it whether they are what they were: none is changed, left out or moved.
//
// The hash is the SHA-256 of what a line of the audit trail says (package lockjson), not of how it says it: programs of all
// versions have to agree on it, whatever their JSON looks like. All of an event is in it in the order of [Hash], each number as eight
// bytes, the highest first, each text as its length and its bytes, in UTF-8, and what may be missing after a number that is 1 if it is there
// and 0 if not. A later version may add to the end what is only there where it is not empty.
//
// The chain begins with the first event of a cluster, and anew where a cluster goes on for one that was lost (the event cluster_begun).
package eventchain

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"unicode/utf8"

	"lockfs/raftstore/storepb"
)

// Size is how many bytes a hash has.
const Size = sha256.Size

// Hash is what Event.Hash has to be.
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

// text takes U+FFFD for each byte that is no UTF-8, as JSON does.
func (d digest) text(s string) {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	d.numbers(uint64(len(s)))
	_, _ = d.Write([]byte(s))
}

// is tells of what may be missing whether it is there.
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
