package audit

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func event(number uint64) Line {
	name := `a\u0000\n` + strings.Repeat("x", int(number%7))
	return Line{number, fmt.Appendf(nil, `{"type":"lock_acquired",%q:%d,"name":"%s"}`, NumberKey, number, name)}
}

func events(numbers ...uint64) []Line {
	lines := make([]Line, len(numbers))
	for i, number := range numbers {
		lines[i] = event(number)
	}
	return lines
}

func text(lines []Line) string {
	var all strings.Builder
	for _, line := range lines {
		all.Write(line.JSON)
		all.WriteByte('\n')
	}
	return all.String()
}

func testConfig(t *testing.T) Config {
	return Config{Path: filepath.Join(t.TempDir(), "audit.jsonl"), MaxSize: 1 << 20, Keep: 3}
}

func openLog(t require.TestingT, cfg Config) *Log {
	log, err := Open(cfg)
	require.NoError(t, err)
	return log
}

// die leaves the file as a killed process does.
func die(t require.TestingT, log *Log) { require.NoError(t, log.file.Close()) }

func content(t require.TestingT, path string) string {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(data)
}

// kept is what all files hold, oldest first.
func kept(t require.TestingT, cfg Config) string {
	log, all := &Log{cfg: cfg}, ""
	for i := cfg.Keep; i >= 0; i-- {
		all += content(t, log.name(i))
	}
	return all
}

func TestAppendAndOpenAgain(t *testing.T) {
	cfg := testConfig(t)
	log := openLog(t, cfg)
	require.Zero(t, log.Last())
	require.NoError(t, log.Append(nil))
	require.NoError(t, log.Append(events(1, 2)))
	require.NoError(t, log.Append(events(2, 3, 3, 1)), "those it has are passed over")
	require.Equal(t, uint64(3), log.Last())
	require.NoError(t, log.Close())
	require.Error(t, log.Append(events(4)))

	log = openLog(t, cfg)
	require.Equal(t, uint64(3), log.Last())
	require.NoError(t, log.Append(events(1, 2, 3, 4)))
	require.NoError(t, log.Close())
	require.Equal(t, text(events(1, 2, 3, 4)), kept(t, cfg))
	info, err := os.Stat(cfg.Path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(fileMode), info.Mode())
}

func TestRotation(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxSize, cfg.Keep = int64(len(text(events(14, 21)))), 2
	log := openLog(t, cfg)
	require.NoError(t, log.Append(events(14, 21, 28, 35, 42)), "a batch is split")
	require.Equal(t, text(events(14, 21)), content(t, cfg.Path+".2"))
	require.Equal(t, text(events(28, 35)), content(t, cfg.Path+".1"))
	require.Equal(t, text(events(42)), content(t, cfg.Path))
	require.NoError(t, log.Append(events(49)))
	require.NoError(t, log.Append(events(56)))
	require.Equal(t, text(events(28, 35)), content(t, cfg.Path+".2"), "the oldest is removed")
	require.NoFileExists(t, cfg.Path+".3")

	long := Line{57, []byte(`{"number":57,"content":"` + strings.Repeat("x", int(cfg.MaxSize)) + `"}`)}
	require.NoError(t, log.Append([]Line{long, event(58)}))
	require.Equal(t, text([]Line{long}), content(t, cfg.Path+".1"), "a line beyond the size has a file for itself")
	require.NoError(t, log.Close())

	require.NoError(t, os.Remove(cfg.Path))
	require.Equal(t, uint64(57), openLog(t, cfg).Last(), "of the newest rotated file")
	require.NoError(t, os.Remove(cfg.Path+".1"))
	require.Equal(t, uint64(56), openLog(t, cfg).Last(), "a rotation that was interrupted leaves out a name")
}

func TestTornAtEveryByte(t *testing.T) {
	cfg := testConfig(t)
	all := events(1, 2, 3, 4)
	for size := range len(text(all)) + 1 {
		for _, tail := range []string{"", "\x00", strings.Repeat("\x00", 5000)} {
			require.NoError(t, os.WriteFile(cfg.Path, []byte(text(all)[:size]+tail), fileMode))
			log := openLog(t, cfg)
			require.Equal(t, text(all[:log.Last()]), content(t, cfg.Path))
			require.NoError(t, log.Append(all))
			die(t, log)
			require.Equal(t, text(all), content(t, cfg.Path), "torn at %d", size)
			require.NoFileExists(t, cfg.Path+cutSuffix)
		}
	}
}

// TestEveryHole has holes begin at every byte and end at one of some, which are others for each beginning.
func TestEveryHole(t *testing.T) {
	cfg := testConfig(t)
	all := events(1, 2, 3, 4)
	whole := []byte(text(all))
	for from := range whole {
		for to := from + 1; to <= len(whole); to += 29 {
			damaged := bytes.Clone(whole)
			clear(damaged[from:to])
			require.NoError(t, os.WriteFile(cfg.Path, damaged, fileMode))
			log := openLog(t, cfg)
			rest := string(damaged[len(text(all[:log.Last()])):])
			moved := content(t, cfg.Path+cutSuffix)
			require.True(t, moved == rest || moved == "" && !strings.Contains(rest, "\n"), "a whole line is lost")
			require.NoError(t, log.Append(all))
			die(t, log)
			require.Equal(t, string(whole), content(t, cfg.Path), "hole from %d to %d", from, to)
			_ = os.Remove(cfg.Path + cutSuffix)
		}
	}
}

func TestNothingOfOthersIsDestroyed(t *testing.T) {
	for _, theirs := range []string{
		"hello\n", "hello", "\n", "[]\n", "null\n", "{}\n", `{"number":0}` + "\n", `{"number":"5"}` + "\n", `{"number":-5}` + "\n", `{"Number":5}` + "\n",
		text(events(1)) + "hello\n", text(events(1)) + "hello", text(events(1)) + "hello\n" + `{"number`, "SQLite\x00",
	} {
		for _, name := range []string{"audit.jsonl", "audit.jsonl.1"} {
			cfg := testConfig(t)
			path := filepath.Join(filepath.Dir(cfg.Path), name)
			require.NoError(t, os.WriteFile(path, []byte(theirs), fileMode))
			_, err := Open(cfg)
			require.ErrorContains(t, err, path+" does not end with a lockfs event", "%q", theirs)
			require.ErrorContains(t, err, "move the file away", "what to do")
			require.Equal(t, theirs, content(t, path))
		}
	}
	cfg := testConfig(t)
	require.NoError(t, os.Mkdir(cfg.Path, 0o700))
	_, err := Open(cfg)
	require.ErrorContains(t, err, "not a regular file")
	_, err = Open(Config{Path: cfg.Path})
	require.Error(t, err)
}

func TestAppendRefusesWhatOpenWould(t *testing.T) {
	cfg := testConfig(t)
	log := openLog(t, cfg)
	for _, line := range []string{"", "1", "{}", `{"number":2}`, "{\"number\":\n1}", ` {"number":1}`, "{\"number\":1,\"a\":\"\x00\"}", `{"number":1`} {
		require.Error(t, log.Append([]Line{{1, []byte(line)}}), "%q", line)
	}
	require.Empty(t, content(t, cfg.Path))
}

func TestGapIsTold(t *testing.T) {
	cfg := testConfig(t)
	var told bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&told, nil))
	log := openLog(t, cfg)
	require.NoError(t, log.Append(events(5, 6)))
	require.Empty(t, told.String(), "where a file begins is no gap")
	require.NoError(t, log.Append(events(6, 10)))
	require.Contains(t, told.String(), "first=7 last=9")
	require.Equal(t, text(events(5, 6, 10)), content(t, cfg.Path))
}

func TestTornEndIsTold(t *testing.T) {
	cfg := testConfig(t)
	var told bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&told, nil))
	require.NoError(t, os.WriteFile(cfg.Path, []byte(text(events(1))+`{"numb`), fileMode))
	openLog(t, cfg)
	require.Contains(t, told.String(), "level=WARN msg=\"cut the torn end off the audit file\"")
	require.Contains(t, told.String(), "cut=6")
}

func TestFileIsMovedByOthers(t *testing.T) {
	ways := map[string]func(t *testing.T, path, away string){
		"moved": func(t *testing.T, path, away string) { require.NoError(t, os.Rename(path, away)) },
		"linked": func(t *testing.T, path, away string) {
			require.NoError(t, os.Link(path, away))
			require.NoError(t, os.Remove(path))
		},
		"moved and created": func(t *testing.T, path, away string) {
			require.NoError(t, os.Rename(path, away))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		},
		"copied and emptied": func(t *testing.T, path, away string) {
			require.NoError(t, os.WriteFile(away, []byte(content(t, path)), 0o600))
			require.NoError(t, os.Truncate(path, 0))
		},
	}
	for what, move := range ways {
		for _, to := range []string{".1", ".old"} {
			t.Run(what+" to "+to, func(t *testing.T) {
				cfg := testConfig(t)
				log := openLog(t, cfg)
				require.NoError(t, log.Append(events(1, 2)))
				move(t, cfg.Path, cfg.Path+to)
				require.Equal(t, uint64(2), log.Last())
				require.NoError(t, log.Append(events(2, 3)))
				require.NoError(t, log.Append(events(4)))
				require.NoError(t, log.Close())
				require.Equal(t, text(events(1, 2)), content(t, cfg.Path+to))
				require.Equal(t, text(events(3, 4)), content(t, cfg.Path))
			})
		}
	}
}

func TestFolderIsAwayForAWhile(t *testing.T) {
	cfg := testConfig(t)
	folder := filepath.Join(filepath.Dir(cfg.Path), "folder")
	require.NoError(t, os.Mkdir(folder, 0o700))
	cfg.Path = filepath.Join(folder, "audit.jsonl")
	log := openLog(t, cfg)
	require.NoError(t, log.Append(events(1)))
	require.NoError(t, os.Rename(folder, folder+"2"))
	require.Error(t, log.Append(events(2)))
	require.NoError(t, os.Rename(folder+"2", folder))
	require.NoError(t, log.Append(events(2)))
	require.Equal(t, text(events(1, 2)), content(t, cfg.Path))
}

func TestRotationThatFailsIsDoneLater(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxSize = 1
	log := openLog(t, cfg)
	require.NoError(t, log.Append(events(1)))
	for i := 1; i <= cfg.Keep; i++ {
		require.NoError(t, os.MkdirAll(filepath.Join(log.name(i), "in the way"), 0o700))
	}
	require.ErrorContains(t, log.Append(events(2, 3)), "rotate")
	require.Equal(t, uint64(1), log.Last())
	for i := 1; i <= cfg.Keep; i++ {
		require.NoError(t, os.RemoveAll(log.name(i)))
	}
	require.NoError(t, log.Append(events(2, 3)))
	require.Equal(t, text(events(1, 2, 3)), kept(t, cfg))
}

func TestWriteThatCannotBeTakenBack(t *testing.T) {
	cfg := testConfig(t)
	log := openLog(t, cfg)
	require.NoError(t, log.Append(events(1)))
	readOnly, err := os.Open(cfg.Path)
	require.NoError(t, err)
	require.NoError(t, log.file.Close())
	log.file = readOnly // neither a write nor a truncation succeeds
	require.Error(t, log.Append(events(2, 3)))
	require.NoError(t, os.WriteFile(cfg.Path, []byte(text(events(1, 2))+`{"numb`), fileMode)) // what the write left
	require.NoError(t, log.Append(events(2, 3)))
	require.Equal(t, text(events(1, 2, 3)), content(t, cfg.Path))
}

func BenchmarkAppend(b *testing.B) {
	log, err := Open(Config{Path: filepath.Join(b.TempDir(), "audit.jsonl"), MaxSize: 64 << 20, Keep: 1})
	require.NoError(b, err)
	number := uint64(0)
	for b.Loop() {
		number++
		require.NoError(b, log.Append([]Line{event(number)}))
	}
}
