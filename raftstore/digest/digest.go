// Package digest hashes a set of values that come and go, at a cost that depends on what has changed and not on how many there are.
//
// The hash of a set is the sum of the SHA-256 hashes of its values' records, as vectors of four numbers modulo 2^64. So the order in
// which values came does not count, and one that goes is subtracted. Nobody who wants two sets to look the same is kept from it by
// that: it is for voters, which are no adversaries of each other, to find out that a bit has flipped in one of them. Two sets that
// differ by accident have the same hash once in 2^256.
//
// A value is hashed late: most are gone again before anybody asks. So what is hashed is what is in memory then.
package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"sync"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// Value is one of a set: a pointer to what is never modified, or something else that is comparable and equal to itself alone.
type Value interface {
	// Record says everything that counts of the value, and of nothing else.
	Record() *storepb.Record
}

// Sum is the hash of a set. That of the empty set is zero.
type Sum [4]uint64

// String is the first half of it, which is enough for people and programs to compare.
func (s Sum) String() string {
	var bytes [16]byte
	binary.BigEndian.PutUint64(bytes[:], s[0])
	binary.BigEndian.PutUint64(bytes[8:], s[1])
	return hex.EncodeToString(bytes[:])
}

// Bytes is what [SumOf] reads again.
func (s Sum) Bytes() []byte {
	bytes := make([]byte, 0, 8*len(s))
	for _, word := range s {
		bytes = binary.BigEndian.AppendUint64(bytes, word)
	}
	return bytes
}

// SumOf reads what [Sum.Bytes] wrote; ok is false for anything else.
func SumOf(bytes []byte) (s Sum, ok bool) {
	if len(bytes) != 8*len(s) {
		return s, false
	}
	for i := range s {
		s[i] = binary.BigEndian.Uint64(bytes[8*i:])
	}
	return s, true
}

// Add puts a message into the set.
func (s *Sum) Add(m proto.Message) {
	for i, word := range words(m) {
		s[i] += word
	}
}

// Subtract takes a message out of the set.
func (s *Sum) Subtract(m proto.Message) {
	for i, word := range words(m) {
		s[i] -= word
	}
}

// buffers are for messages in bytes.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func words(m proto.Message) (words Sum) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	bytes, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend((*buffer)[:0], m)
	if err != nil {
		return words // a string that is no UTF-8 cannot be written into a snapshot either
	}
	*buffer = bytes
	hash := sha256.Sum256(bytes)
	for i := range words {
		words[i] = binary.BigEndian.Uint64(hash[i*8:])
	}
	return words
}

// Digest is the hash of a set that changes. It is not safe for concurrent use.
type Digest struct {
	sum       Sum                // of what was there when it was settled last
	came      map[Value]struct{} // since then
	went      []Value            // likewise
	restoring bool
}

// New is the digest of the empty set.
func New() *Digest { return &Digest{came: make(map[Value]struct{})} }

// Restoring is the digest of a set that is put together again: it takes no notice of that until it is told the sum.
func Restoring() *Digest {
	d := New()
	d.restoring = true
	return d
}

// Restored tells the sum that the set had, and goes on from there. Whether it has that sum is for its owner to find out.
func (d *Digest) Restored(sum Sum) { d.sum, d.restoring = sum, false }

// most is how many values may wait to be hashed: about as many as take two milliseconds.
const most = 1024

// Put tells that a value is in the set.
func (d *Digest) Put(v Value) {
	if d.restoring {
		return
	}
	d.came[v] = struct{}{}
	if len(d.came) > most {
		d.settle()
	}
}

// Remove tells that a value, which was in the set, is not any more.
func (d *Digest) Remove(v Value) {
	if d.restoring {
		return
	}
	if _, unsettled := d.came[v]; unsettled {
		delete(d.came, v)
		return
	}
	if d.went = append(d.went, v); len(d.went) > most {
		d.settle()
	}
}

// Sum is the hash of the set as it is. It takes as long as what has changed since it was asked for last, a few milliseconds at most.
func (d *Digest) Sum() Sum {
	d.settle()
	return d.sum
}

func (d *Digest) settle() {
	for v := range d.came {
		d.sum.Add(v.Record())
	}
	for _, v := range d.went {
		d.sum.Subtract(v.Record())
	}
	clear(d.came)
	clear(d.went)
	d.went = d.went[:0]
}
