package crashstate

import (
	"errors"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Append implements lookguard.Log. After a failed write, the crash state is incomplete.
func (e *Estate) Append(text []byte) bool {
	if e.seen.length+len(text) > mostText {
		return false
	}
	if _, err := e.file.WriteAt(text, int64(e.seen.at+e.seen.length)); err != nil {
		e.word(atIncomplete).Store(1)
		return true
	}
	e.seen.length += len(text)
	e.noteSeen()
	return e.seen.length < max(shortText, fullText*e.seen.first)
}

// Replace implements lookguard.Log.
func (e *Estate) Replace(text []byte) {
	before := e.seen
	e.seen = seen{at: atText, length: len(text), first: len(text)}
	if before.at == atText {
		e.seen.at = atOther
	}
	if _, err := e.file.WriteAt(text, int64(e.seen.at)); err != nil {
		e.word(atIncomplete).Store(1)
		return
	}
	e.noteSeen()
	if before.length > 0 {
		_ = unix.Fallocate(int(e.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(before.at), int64(before.length))
	}
}

func (e *Estate) noteSeen() { e.word(atSeen).Store(uint64(e.seen.at) | uint64(e.seen.length)<<32) }

// Load reads a crash state from a file. It returns the whole file if it is none (see [Is]).
func Load(file *os.File) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(file, 0, size), data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && word(data, atMagic) != magic {
		return io.ReadAll(io.NewSectionReader(file, 0, 1<<40))
	}
	if err != nil {
		return nil, err
	}
	at, length := word(data, atSeen)&(1<<32-1), word(data, atSeen)>>32
	text := make([]byte, min(length, mostText))
	if _, err := io.ReadFull(io.NewSectionReader(file, int64(at), int64(len(text))), text); err != nil {
		return nil, err
	}
	names, err := loadNames(file, data)
	return slices.Concat(data, text, names), err
}

// loadNames returns the names of all open files, concatenated.
func loadNames(file *os.File, data []byte) (names []byte, err error) {
	for n := range room {
		at := atFiles + n*slot
		if word(data, at) == 0 {
			continue
		}
		name := make([]byte, min(word(data, at+24), mostName))
		if _, err := file.ReadAt(name, int64(atNames+n*mostName)); err != nil {
			return nil, err
		}
		names = append(names, name...)
	}
	return names, nil
}
