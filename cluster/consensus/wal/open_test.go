package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"lockfs/test/fuzzing"
)

// entry is one that tells what it is; some are larger than a sector.
func entry(index uint64) *raft.Log {
	data := bytes.Repeat([]byte{byte(index) | 1}, 20+int(index%5)*300)
	return &raft.Log{Index: index, Term: 7, Type: raft.LogCommand, Data: append(fmt.Appendf(nil, "%d:", index), data...)}
}

// testSegment is small, so that there are many.
const testSegment = 32 << 10

func openTest(dir string, used bool) (*Log, error) {
	return open(dir, used, testSegment, hclog.NewNullLogger(), segmentFiles{walfs.New(), Once})
}

func mustOpen(t testing.TB, dir string, used bool) *Log {
	t.Helper()
	log, err := openTest(dir, used)
	require.NoError(t, err)
	return log
}

// crash leaves the directory as it is when the process is killed.
func crash(t testing.TB, log *Log) { require.NoError(t, log.WAL.Close()) }

func requireEntries(t testing.TB, log *Log, first, last uint64) {
	t.Helper()
	has, err := log.FirstIndex()
	require.NoError(t, err)
	require.Equal(t, first, has)
	has, err = log.LastIndex()
	require.NoError(t, err)
	require.Equal(t, last, has)
	for index := first; index <= last; index++ {
		var got raft.Log
		require.NoError(t, log.GetLog(index, &got))
		want := entry(index)
		require.Equal(t, want.Data, got.Data)
		require.Equal(t, want.Term, got.Term)
	}
}

func tailOf(t testing.TB, dir string) string {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	return segments[len(segments)-1]
}

// TestWhatWasNotSyncedIsBeforeItIsRead puts something in the place of the tail that cannot be synced: who relied on what it reads
// there would promise what a power cut takes.
func TestWhatWasNotSyncedIsBeforeItIsRead(t *testing.T) {
	s := newSample(t, 3)
	require.NoError(t, os.Remove(s.tail))
	require.NoError(t, os.Symlink("/dev/null", s.tail))
	_, err := openTest(s.dir, true)
	require.ErrorIs(t, err, unix.EINVAL)
}

// sample is a directory with a log, closed or not, and where its batches end in the file.
type sample struct {
	dir, tail string
	content   []byte
	last      uint64
	ends      []int // of batches
	lasts     []uint64
}

func newSample(t testing.TB, batches int) *sample {
	s := &sample{dir: filepath.Join(t.TempDir(), "log")}
	log := mustOpen(t, s.dir, false)
	next := uint64(1)
	for n := range batches {
		var batch []*raft.Log
		for range n%3 + 1 {
			batch = append(batch, entry(next))
			next++
		}
		require.NoError(t, log.StoreLogs(batch))
		s.tail = tailOf(t, s.dir)
		content, err := os.ReadFile(s.tail)
		require.NoError(t, err)
		s.ends, s.lasts = append(s.ends, used(content)), append(s.lasts, next-1)
		s.content = content
	}
	s.last = next - 1
	crash(t, log)
	return s
}

// open puts a content in place of the segment's, and opens the log.
func (s *sample) open(t testing.TB, content []byte) (*Log, error) {
	require.NoError(t, os.WriteFile(s.tail, content, 0o600))
	return openTest(s.dir, true)
}

// TestTornWrites cuts the last batch at each sector, and leaves out each sector of it: what was acknowledged before is there,
// and the log goes on from it.
func TestTornWrites(t *testing.T) {
	s := newSample(t, 12)
	from, to := s.ends[len(s.ends)-2], s.ends[len(s.ends)-1]
	before := s.lasts[len(s.lasts)-2]
	require.Greater(t, to/sectorSize, from/sectorSize+1, "it has several sectors")
	var torn [][]byte
	for cut := (from/sectorSize + 1) * sectorSize; cut < to; cut += sectorSize {
		ends := bytes.Clone(s.content)
		clear(ends[cut:])
		misses := bytes.Clone(s.content)
		clear(misses[max(cut-sectorSize, from):cut])
		torn = append(torn, ends, misses)
	}
	none := bytes.Clone(s.content)
	clear(none[from:])
	for _, content := range append(torn, none) {
		log, err := s.open(t, content)
		require.NoError(t, err)
		requireEntries(t, log, 1, before)
		require.NoError(t, log.StoreLogs([]*raft.Log{entry(before + 1)}))
		requireEntries(t, log, 1, before+1)
		crash(t, log)
		log = mustOpen(t, s.dir, true)
		requireEntries(t, log, 1, before+1)
		crash(t, log)
	}
}

// judge is what opening a segment with a content comes to.
func (s *sample) judge(t testing.TB, content []byte) (last uint64, err error) {
	m, err := loadMeta(s.dir)
	require.NoError(t, err)
	info := m.data.Segments[0]
	info.SizeLimit = 0
	has, err := checkTail(content, info)
	return has.last, err
}

// TestEndsAtEveryByte has a file end with zeros from each byte on: either that is refused, or no batch is missing but the
// one that could have been torn off there.
func TestEndsAtEveryByte(t *testing.T) {
	s := newSample(t, 6)
	end := s.ends[len(s.ends)-1]
	content := bytes.Clone(s.content[:end+2*sectorSize])
	refused := 0
	for cut := end - 1; cut >= 0; cut-- {
		content[cut] = 0
		last, err := s.judge(t, content)
		if err != nil {
			refused++
			continue
		}
		want := uint64(0)
		for n, end := range s.ends {
			if end <= cut {
				want = s.lasts[n]
			}
		}
		require.Equal(t, want, last, "zeros from %d on", cut)
	}
	require.Positive(t, refused)
}

// TestShortFiles cuts a file short.
func TestShortFiles(t *testing.T) {
	s := newSample(t, 6)
	for cut := 1; cut < len(s.content); cut = cut*3 + 1 {
		_, err := s.open(t, s.content[:cut])
		require.ErrorAs(t, err, new(*Damage), "cut short at %d", cut)
	}
}

// TestFlippedBits flips each bit that is in use: it is refused.
func TestFlippedBits(t *testing.T) {
	s := newSample(t, 4)
	end := s.ends[len(s.ends)-1]
	content := bytes.Clone(s.content[:end+2*sectorSize])
	for at := range end {
		for bit := range 8 {
			content[at] ^= 1 << bit
			_, err := s.judge(t, content)
			require.Error(t, err, "bit %d of byte %d", bit, at)
			content[at] ^= 1 << bit
		}
	}
	last, err := s.judge(t, content)
	require.NoError(t, err)
	require.Equal(t, s.last, last)
}

// TestClosedLogsAreWhole damages a log that was closed, in ways which after a crash could be a torn write.
func TestClosedLogsAreWhole(t *testing.T) {
	s := newSample(t, 9)
	log := mustOpen(t, s.dir, true)
	require.NoError(t, log.Close())
	meta, err := os.ReadFile(filepath.Join(s.dir, metaFile))
	require.NoError(t, err)
	for n, end := range append([]int{0}, s.ends[:len(s.ends)-1]...) {
		cut := bytes.Clone(s.content)
		clear(cut[end:])
		_, err := s.open(t, cut)
		require.ErrorAs(t, err, new(*Damage), "without batch %d", n)
	}
	require.NoError(t, os.Remove(s.tail))
	_, err = openTest(s.dir, true)
	require.ErrorAs(t, err, new(*Damage), "without the file")

	for at := range meta {
		damaged := bytes.Clone(meta)
		damaged[at] ^= 1
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, metaFile), damaged, 0o600))
		_, err := s.open(t, s.content)
		require.ErrorAs(t, err, new(*Damage), "a bit of byte %d of the list of segments", at)
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, metaFile), meta, 0o600))
	log, err = s.open(t, s.content)
	require.NoError(t, err)
	requireEntries(t, log, 1, s.last)
	crash(t, log)
	require.NoError(t, os.Remove(filepath.Join(s.dir, metaFile)))
	_, err = openTest(s.dir, true)
	require.ErrorAs(t, err, new(*Damage), "without the list of segments")
}

// TestAWriteThatFailedMayBeThere: entries whose fsync failed are read again, or not, and are no damage.
func TestAWriteThatFailedMayBeThere(t *testing.T) {
	t.Parallel()
	other, dir := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "log")
	written := mustOpen(t, other, false)
	log := mustOpen(t, dir, false)
	for index := uint64(1); index <= 3; index++ {
		require.NoError(t, written.StoreLog(entry(index)))
		if index < 3 {
			require.NoError(t, log.StoreLog(entry(index)))
		}
	}
	crash(t, written)
	require.Error(t, log.StoreLog(entry(17)), "a gap")
	content, err := os.ReadFile(tailOf(t, other))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(tailOf(t, dir), content, 0o600))
	require.NoError(t, log.Close())

	log = mustOpen(t, dir, true)
	requireEntries(t, log, 1, 3)
	require.NoError(t, log.StoreLog(entry(4)))
	require.NoError(t, log.Close())
	m, err := loadMeta(dir)
	require.NoError(t, err)
	require.True(t, m.data.Closed, "all was written")
}

// TestADeletionThatFailedMayBeDone: on a disk that fails, or is full, the list of segments may be written or not, and then the next segment.
func TestADeletionThatFailedMayBeDone(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk fails")
	for _, row := range []struct {
		name        string
		first, last uint64 // that are deleted
		writes      int    // that get to the disk
		end         uint64
	}{
		{"the end of a segment, not noted", 90, 100, 0, 100},
		{"the end of a segment, noted", 90, 100, 1, 89},
		{"whole segments, not noted", 5, 100, 0, 100},
		{"whole segments, noted", 5, 100, 1, 4},
		{"the beginning, not noted", 1, 10, 0, 100},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, left := filepath.Join(t.TempDir(), "log"), 1000
			log, err := open(dir, false, testSegment, hclog.NewNullLogger(), segmentFiles{walfs.New(), func(write func() error) error {
				if left--; left < 0 {
					return broken
				}
				return write()
			}})
			require.NoError(t, err)
			for index := uint64(1); index <= 100; index++ {
				require.NoError(t, log.StoreLog(entry(index)))
			}
			left = row.writes
			require.ErrorIs(t, log.DeleteRange(row.first, row.last), broken)
			left = 1000 // it works again
			require.NoError(t, log.Close())
			log = mustOpen(t, dir, true)
			requireEntries(t, log, 1, row.end)
			require.NoError(t, log.StoreLog(entry(row.end+1)))
			require.NoError(t, log.Close())
			requireEntries(t, mustOpen(t, dir, true), 1, row.end+1)
		})
	}
}

// TestSealedSegmentsAreChecked fills segments, and damages the first.
func TestSealedSegmentsAreChecked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log := mustOpen(t, dir, false)
	next := uint64(1)
	for files := 0; files < 3; {
		var batch []*raft.Log
		for range 20 {
			batch = append(batch, entry(next))
			next++
		}
		require.NoError(t, log.StoreLogs(batch))
		segments, err := filepath.Glob(filepath.Join(dir, "*.wal"))
		require.NoError(t, err)
		files = len(segments)
	}
	require.NoError(t, log.DeleteRange(1, 10))
	crash(t, log)
	log = mustOpen(t, dir, true)
	requireEntries(t, log, 11, next-1)
	crash(t, log)

	segments, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	require.NoError(t, err)
	whole, err := os.ReadFile(segments[0])
	require.NoError(t, err)
	for at := 0; at < used(whole); at += 97 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 4
		require.NoError(t, os.WriteFile(segments[0], damaged, 0o600))
		_, err := openTest(dir, true)
		require.ErrorAs(t, err, new(*Damage), "byte %d", at)
	}
	require.NoError(t, os.Remove(segments[0]))
	_, err = openTest(dir, true)
	require.ErrorAs(t, err, new(*Damage), "without the file")
}

// TestLogIsThatOfAModel stores, cuts at both ends, closes, crashes and opens at random.
func TestLogIsThatOfAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent, err := os.MkdirTemp("", "wal")
		require.NoError(t, err)
		defer func() { require.NoError(t, os.RemoveAll(parent)) }()
		dir := filepath.Join(parent, "log")
		log, err := openTest(dir, false)
		require.NoError(t, err)
		first, last := uint64(0), uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"store": func(t *rapid.T) {
				next := last + 1
				if first == 0 {
					next = uint64(rapid.IntRange(1, 50).Draw(t, "first"))
					first = next
				}
				var batch []*raft.Log
				for range rapid.IntRange(1, 4).Draw(t, "entries") {
					batch = append(batch, entry(next))
					last = next
					next++
				}
				require.NoError(t, log.StoreLogs(batch))
			},
			"cut the beginning": func(t *rapid.T) {
				if first == last {
					t.Skip("too few")
				}
				to := rapid.Uint64Range(first, last-1).Draw(t, "to")
				require.NoError(t, log.DeleteRange(first, to))
				first = to + 1
			},
			"cut the end": func(t *rapid.T) {
				if first == last {
					t.Skip("too few")
				}
				from := rapid.Uint64Range(first+1, last).Draw(t, "from")
				require.NoError(t, log.DeleteRange(from, last))
				last = from - 1
			},
			"open again": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "crash") {
					require.NoError(t, log.WAL.Close())
				} else {
					require.NoError(t, log.Close())
				}
				log, err = openTest(dir, true)
				require.NoError(t, err)
			},
			"": func(t *rapid.T) {
				if first != 0 {
					requireModel(t, log, first, last)
				}
			},
		})
		require.NoError(t, log.Close())
	})
}

func requireModel(t *rapid.T, log *Log, first, last uint64) {
	hasFirst, err := log.FirstIndex()
	require.NoError(t, err)
	hasLast, errLast := log.LastIndex()
	require.NoError(t, errLast)
	require.Equal(t, []uint64{first, last}, []uint64{hasFirst, hasLast})
	for index := first; index <= last; index++ {
		var got raft.Log
		require.NoError(t, log.GetLog(index, &got))
		require.Equal(t, entry(index).Data, got.Data)
	}
}

// FuzzSegments has any content for a segment: it is read without a crash.
func FuzzSegments(f *testing.F) {
	s := newSample(f, 5)
	f.Add(s.content[:s.ends[4]])
	f.Add(s.content[:s.ends[2]+40])
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		info := types.SegmentInfo{BaseIndex: 1, ID: 1, Codec: 1}
		has, err := checkTail(content, info)
		require.True(t, err != nil || has.torn.from <= has.torn.to && has.torn.to <= padded(uint32(len(content))))
		_ = checkSealed(content, info)
	})
}
