package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// A bbolt file begins with two pages that describe the newest state in turn (go.etcd.io/bbolt,
// internal/common/meta.go).
const (
	boltMagic      = 0xED0CDAED
	boltPageHead   = 16 // bytes of a page before its content
	boltPageSizeAt = 8  // in a meta
	boltTxAt       = 48
	boltSumAt      = 56
	boltMetaSize   = 64
)

// checkMetaPages requires two intact pages of consecutive transactions. bbolt itself accepts one, and
// would go back to an older state, with an older vote. A crash cannot damage one of them, because its
// relevant part is within a sector.
func checkMetaPages(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	first, pageSize, err := readMetaPage(file, 0)
	if err != nil {
		return err
	}
	second, _, err := readMetaPage(file, pageSize)
	if err != nil {
		return err
	}
	if first+1 != second && second+1 != first {
		return fmt.Errorf("its first pages are of the transactions %d and %d", first, second)
	}
	return nil
}

func readMetaPage(file io.ReaderAt, at int64) (transaction uint64, pageSize int64, err error) {
	meta := make([]byte, boltMetaSize)
	if _, err := file.ReadAt(meta, at+boltPageHead); err != nil {
		return 0, 0, fmt.Errorf("page at %d: %w", at, err)
	}
	order := binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:boltSumAt])
	if order.Uint32(meta) != boltMagic || order.Uint64(meta[boltSumAt:]) != sum.Sum64() {
		return 0, 0, errors.New("one of its first pages has another checksum")
	}
	return order.Uint64(meta[boltTxAt:]), int64(order.Uint32(meta[boltPageSizeAt:])), nil
}
