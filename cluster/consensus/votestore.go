package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"lockfs/cluster/atomicfile"
	"lockfs/raftstore/checksum"
	"lockfs/raftstore/ids"
)

// voteStore keeps the current term and the last vote in one record with a checksum. Raft writes term and
// candidate of a vote one after the other. A crash between the two would leave a vote of one term with
// the candidate of another (hashicorp/raft#661).
type voteStore struct {
	bolt   *raftboltdb.BoltStore
	log    *parallelLog // flushed before the next term begins
	disk   *disk        // nil: not watched
	stored votes
	term   ids.Term // of an incomplete vote; raft writes from one goroutine
	failed error    // why that goroutine ended
}

var _ raft.StableStore = (*voteStore)(nil)

type votes struct {
	current   ids.Term
	term      ids.Term // of the last vote
	candidate []byte   // of the last vote
}

// Raft's keys, and the key of the record.
const (
	keyCurrentTerm   = "CurrentTerm"
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
	keyVotes         = "Votes"
)

// openVotes checks the whole file. used means that there must be a record.
func openVotes(path string, used bool) (*voteStore, error) {
	if err := checkVotes(path, used); err != nil {
		return nil, err
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: &bbolt.Options{Timeout: time.Second}})
	if err != nil {
		return nil, damagedOr(path, err)
	}
	v := &voteStore{bolt: bolt}
	if v.stored, err = loadVotes(bolt, used); err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	return v, nil
}

// Close is not part of raft.StableStore.
func (v *voteStore) Close() error { return v.bolt.Close() }

// SetUint64 is part of raft.StableStore. If the disk fails, it ends raft's goroutine: a node that cannot
// store a term takes no part in it.
func (v *voteStore) SetUint64(key []byte, value uint64) error {
	switch string(key) {
	case keyVoteTerm:
		v.term = ids.Term(value)
		return nil
	case keyCurrentTerm:
		next := v.stored
		next.current = ids.Term(value)
		err := v.save(next)
		if err != nil && v.disk != nil {
			v.failed = err
			runtime.Goexit() // raft would panic; this process ends in order instead
		}
		return err
	}
	return fmt.Errorf("raft has no number %q to keep", key)
}

// Set is part of raft.StableStore.
func (v *voteStore) Set(key, value []byte) error {
	if string(key) != keyVoteCandidate {
		return fmt.Errorf("raft has no %q to keep", key)
	}
	next := v.stored
	next.term, next.candidate = v.term, value
	return v.save(next)
}

// GetUint64 is part of raft.StableStore. An unset value is 0.
func (v *voteStore) GetUint64(key []byte) (uint64, error) {
	switch string(key) {
	case keyVoteTerm:
		return uint64(v.stored.term), nil
	case keyCurrentTerm:
		return uint64(v.stored.current), nil
	}
	return 0, fmt.Errorf("raft has no number %q to keep", key)
}

// Get is part of raft.StableStore. An unset value is empty.
func (v *voteStore) Get(key []byte) ([]byte, error) {
	if string(key) != keyVoteCandidate {
		return nil, fmt.Errorf("raft has no %q to keep", key)
	}
	return v.stored.candidate, nil
}

func (v *voteStore) save(next votes) error {
	record := make([]byte, checksum.Size, checksum.Size+16+len(next.candidate))
	record = binary.BigEndian.AppendUint64(record, uint64(next.current))
	record = binary.BigEndian.AppendUint64(record, uint64(next.term))
	record = append(record, next.candidate...)
	binary.BigEndian.PutUint32(record, checksum.Of(record[checksum.Size:]))
	if v.log != nil {
		if err := v.log.flush(); err != nil {
			return err
		}
	}
	write := func() error { return v.bolt.Set([]byte(keyVotes), record) }
	if v.disk != nil {
		unwatched := write
		write = func() error { return v.disk.do(unwatched) }
	}
	if err := write(); err != nil {
		return err
	}
	v.stored = next
	return nil
}

// loadVotes returns a zero record if there is none yet.
func loadVotes(bolt *raftboltdb.BoltStore, used bool) (votes, error) {
	record, err := bolt.Get([]byte(keyVotes))
	switch {
	case errors.Is(err, raftboltdb.ErrKeyNotFound) && !used:
		return votes{}, nil
	case err != nil:
		return votes{}, err
	case len(record) < checksum.Size+16 || checksum.Of(record[checksum.Size:]) != binary.BigEndian.Uint32(record):
		return votes{}, errors.New("the record of votes has another checksum")
	}
	record = record[checksum.Size:]
	return votes{ids.Term(binary.BigEndian.Uint64(record)), ids.Term(binary.BigEndian.Uint64(record[8:])), record[16:]}, nil
}

// checkVotes checks the file before it is used. Damage in a memory-mapped file can cause a fault or a
// panic, and does so here.
func checkVotes(path string, used bool) (err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && !used:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return &DamagedError{Path: path, Err: errors.New("it is missing")}
	case err != nil:
		return err
	case info.Size() == 0 && !used:
		return nil
	case info.Size() == 0:
		return &DamagedError{Path: path, Err: errors.New("it is empty")}
	}
	if err := atomicfile.Sync(path); err != nil {
		return err
	}
	if _, err := os.ReadFile(path); err != nil { // as a fault it would look like damage
		return err
	}
	faults := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(faults)
	defer func() {
		if p := recover(); p != nil {
			err = &DamagedError{Path: path, Err: fmt.Errorf("%v", p)}
		}
	}()
	if err = checkMetaPages(path); err == nil {
		err = checkPages(path, info.Size())
	}
	if err == nil {
		err = checkRecord(path, used)
	}
	if err != nil {
		return damagedOr(path, err)
	}
	return nil
}

// checkPages checks the structure of the file.
func checkPages(path string, size int64) (err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > size {
			return fmt.Errorf("it has %d bytes of %d", size, tx.Size())
		}
		var first error
		for err := range tx.Check() {
			if first == nil { // bbolt reports its own panics as errors
				first = errors.New(strings.TrimPrefix(err.Error(), "panic: "))
			}
		}
		return first
	})
}

// votesBucket is raft-boltdb's bucket for term and vote.
const votesBucket = "conf"

// hasBuckets reports whether a file has the buckets of raft-boltdb. They are made after the file, and the
// process may have been killed in between.
func hasBuckets(path string) (has bool, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		return false, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		has = tx.Bucket([]byte(votesBucket)) != nil
		return nil
	})
	return has, errors.Join(err, db.Close())
}

func checkRecord(path string, used bool) (err error) {
	switch has, err := hasBuckets(path); {
	case err != nil:
		return err
	case !has && used:
		return errors.New("it has no record of votes")
	case !has:
		return nil
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: path, BoltOptions: &bbolt.Options{Timeout: time.Second, ReadOnly: true},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bolt.Close()) }()
	_, err = loadVotes(bolt, used)
	return err
}

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
