// Package digest hashes a changing set of values, at a cost in proportion to the changes.
//
// The hash of a set is the sum of the SHA-256 hashes of its values' records, as vectors of four numbers
// modulo 2^64. So the order of values does not matter, and a removed value is subtracted. This detects
// flipped bits in the memory of a voter. It does not stop an adversary from constructing two sets with equal
// hashes. Sets that differ by accident have equal hashes once in 2^256.
//
// A value is hashed late, since most values are removed before the next use of the hash. So the hash covers
// the content of memory at that time.
package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"sync"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// Value is a member of a set: a pointer to unmodified data, or another comparable value equal only to itself.
type Value interface {
	// Record returns everything relevant of the value, and nothing else.
	Record() *storepb.Record
}

// Sum is the hash of a set. That of the empty set is zero.
type Sum [4]uint64

// String returns the first half, which is enough for comparisons.
func (s Sum) String() string {
	var bytes [16]byte
	binary.BigEndian.PutUint64(bytes[:], s[0])
	binary.BigEndian.PutUint64(bytes[8:], s[1])
	return hex.EncodeToString(bytes[:])
}

// Bytes returns an encoding for [SumOf].
func (s Sum) Bytes() []byte {
	bytes := make([]byte, 0, 8*len(s))
	for _, word := range s {
		bytes = binary.BigEndian.AppendUint64(bytes, word)
	}
	return bytes
}

// SumOf decodes the result of [Sum.Bytes]; ok is false for anything else.
func SumOf(bytes []byte) (s Sum, ok bool) {
	if len(bytes) != 8*len(s) {
		return s, false
	}
	for i := range s {
		s[i] = binary.BigEndian.Uint64(bytes[8*i:])
	}
	return s, true
}

// Add adds a message to the set.
func (s *Sum) Add(m proto.Message) {
	for i, word := range words(m) {
		s[i] += word
	}
}

// Subtract removes a message from the set.
func (s *Sum) Subtract(m proto.Message) {
	for i, word := range words(m) {
		s[i] -= word
	}
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func words(m proto.Message) (words Sum) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	bytes, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend((*buffer)[:0], m)
	if err != nil {
		return words // a snapshot cannot hold a string of invalid UTF-8 either
	}
	*buffer = bytes
	hash := sha256.Sum256(bytes)
	for i := range words {
		words[i] = binary.BigEndian.Uint64(hash[i*8:])
	}
	return words
}

// Digest is the hash of a changing set. It is not safe for concurrent use.
type Digest struct {
	sum       Sum                // at the last settlement
	came      map[Value]struct{} // since then
	went      []Value            // likewise
	restoring bool
}

// New returns the digest of the empty set.
func New() *Digest { return &Digest{came: make(map[Value]struct{})} }

// Restoring returns the digest of a set that is being restored. It ignores changes until Restored.
func Restoring() *Digest {
	d := New()
	d.restoring = true
	return d
}

// Restored sets the sum of the restored set, without checking it.
func (d *Digest) Restored(sum Sum) { d.sum, d.restoring = sum, false }

// most is the most unhashed values: about two milliseconds of hashing.
const most = 1024

// Put adds a value to the set.
func (d *Digest) Put(v Value) {
	if d.restoring {
		return
	}
	d.came[v] = struct{}{}
	if len(d.came) > most {
		d.settle()
	}
}

// Remove removes a value from the set.
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

// Sum returns the hash of the present set. It takes time in proportion to the changes since the last call, a
// few milliseconds at most.
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
