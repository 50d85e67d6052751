package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/stretchr/testify/require"
)

// contents are those that a power cut must not make look like damage, and damage not like a power cut.
func contents() map[string][]byte {
	const size = 64 << 10
	random := make([]byte, size)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	frames := make([]byte, size)
	for at := 0; at < size; at += wordSize {
		frames[at], frames[at+4] = byte(at/wordSize%4), 16 // of all kinds, and zeros
	}
	holes := bytes.Clone(random)
	for at := 0; at < size; at += 4 * sectorSize {
		clear(holes[at : at+2*sectorSize])
	}
	return map[string][]byte{
		"zeros": make([]byte, size), "random": random, "frames": frames, "holes": holes,
		"zeros, then one byte": append(make([]byte, size), 1), "one byte, then zeros": append([]byte{1}, make([]byte, size)...),
		"nothing": nil, "a byte": {0}, "text": bytes.Repeat([]byte("a lock\n"), size/7),
	}
}

// largeLog is a log that ends with a batch of which one entry has a content; sealed says that the batch fills its segment.
func largeLog(t *testing.T, content []byte, sealed bool) *sample {
	s := &sample{dir: filepath.Join(t.TempDir(), "log")}
	size := 256 << 10
	if sealed {
		size = 8 << 10
	}
	log, err := open(s.dir, false, size, hclog.NewNullLogger(), segmentFiles{walfs.New(), Once})
	require.NoError(t, err)
	last := entry(5)
	last.Data = content
	for _, batch := range [][]*raft.Log{{entry(1), entry(2)}, {entry(3)}, {entry(4), last, entry(6)}} {
		s.tail = tailOf(t, s.dir)
		require.NoError(t, log.StoreLogs(batch))
		s.content, err = os.ReadFile(s.tail)
		require.NoError(t, err)
		s.ends, s.lasts = append(s.ends, used(s.content)), append(s.lasts, batch[len(batch)-1].Index)
	}
	s.last = 6
	crash(t, log)
	return s
}

// lastBatch is where the last batch stands, and where its sectors begin.
func (s *sample) lastBatch() (from, to int, sectors []int) {
	from, to = s.ends[len(s.ends)-2], s.ends[len(s.ends)-1]
	for at := from; at < to; at = (at/sectorSize + 1) * sectorSize {
		sectors = append(sectors, at)
	}
	return from, to, sectors
}

// without is the content of the segment if those sectors had not been written.
func (s *sample) without(sectors ...int) []byte {
	_, to, _ := s.lastBatch()
	content := bytes.Clone(s.content)
	for _, at := range sectors {
		clear(content[at:min((at/sectorSize+1)*sectorSize, to)])
	}
	return content
}

// requireTorn requires that nothing is missing but the last batch, or nothing at all where the content is the same without.
func (s *sample) requireTorn(t *testing.T, content []byte, what string, args ...any) {
	last, err := s.judge(t, content)
	require.NoErrorf(t, err, what, args...)
	want := s.lasts[len(s.lasts)-2]
	if bytes.Equal(content, s.content) {
		want = s.last
	}
	require.Equalf(t, want, last, what, args...)
}

// TestPowerCutsAreNotDamage cuts the power in the last batch: only its first sectors are there, or all but one, or any.
func TestPowerCutsAreNotDamage(t *testing.T) {
	for what, content := range contents() {
		for _, sealed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sealed %t", what, sealed), func(t *testing.T) {
				s := largeLog(t, content, sealed)
				_, _, sectors := s.lastBatch()
				for n, at := range sectors {
					s.requireTorn(t, s.without(sectors[n:]...), "%d sectors of %d", n, len(sectors))
					s.requireTorn(t, s.without(at), "without sector %d of %d", n, len(sectors))
				}
				for round := range 100 {
					missing := slices.Clone(sectors)
					rand.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
					missing = missing[:rand.IntN(len(missing))+1]
					s.requireTorn(t, s.without(missing...), "round %d without %v", round, missing)
				}
			})
		}
	}
}

// TestShortFilesOfALargeBatch cuts the power in a batch that goes beyond the size with which its file was made.
func TestShortFilesOfALargeBatch(t *testing.T) {
	for what, content := range contents() {
		s := largeLog(t, content, true)
		m, err := loadMeta(s.dir)
		require.NoError(t, err)
		for size := int(m.data.Segments[0].SizeLimit); size < len(s.content); size += sectorSize {
			s.requireTorn(t, s.content[:size], "%s, %d bytes", what, size)
		}
	}
}

// TestDamageIsNotAPowerCut flips bits of any batch, and has sectors of all but the last be zeros.
func TestDamageIsNotAPowerCut(t *testing.T) {
	for what, content := range contents() {
		t.Run(what, func(t *testing.T) {
			s := largeLog(t, content, false)
			log, err := open(s.dir, true, 256<<10, hclog.NewNullLogger(), segmentFiles{walfs.New(), Once})
			require.NoError(t, err)
			require.NoError(t, log.StoreLogs([]*raft.Log{entry(7)}))
			crash(t, log)
			whole, err := os.ReadFile(s.tail)
			require.NoError(t, err)
			end := s.ends[len(s.ends)-1]
			for at := 0; at < end; at += 1 + rand.IntN(400) {
				damaged := bytes.Clone(whole)
				damaged[at] ^= 1 << rand.IntN(8)
				_, err := s.judge(t, damaged)
				require.Error(t, err, "a bit of byte %d", at)
			}
			for at := 0; at < end; at = (at/sectorSize + 1) * sectorSize {
				damaged := bytes.Clone(whole)
				clear(damaged[at:min((at/sectorSize+1)*sectorSize, end)])
				if !bytes.Equal(damaged, whole) {
					_, err := s.judge(t, damaged)
					require.Error(t, err, "without the sector at %d", at)
				}
			}
		})
	}
}

// TestLengthsAreSaidTwice flips each bit of the frame of an entry that is the last one: no power cut is believed.
func TestLengthsAreSaidTwice(t *testing.T) {
	for what, content := range contents() {
		s := largeLog(t, content, false)
		from, _, _ := s.lastBatch()
		at := from + wordSize
		for s.content[at] != 1 || s.content[at+wordSize] != 5 { // it says which entry it is
			at += wordSize
		}
		for bit := range 8 * wordSize {
			damaged := bytes.Clone(s.content)
			damaged[at+bit/8] ^= 1 << (bit % 8)
			_, err := s.judge(t, damaged)
			require.Error(t, err, "%s: bit %d of the frame at %d", what, bit, at)
		}
	}
}
