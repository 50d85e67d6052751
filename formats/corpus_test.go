package formats_test

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats"
	"lockfs/formats/lockfact"
)

// What holds now. A change that makes one of them less is wrong, unless the corpus has grown by samples that are harder.
const (
	leastPrecision = 0.95
	leastRecall    = 0.93
)

// sample is a line of testdata/corpus.txt.
type sample struct {
	isLock, exclusive     bool
	format, by, directory string
	name, content         string
}

func corpus(t *testing.T) (samples []sample) {
	text, err := os.ReadFile("testdata/corpus.txt")
	require.NoError(t, err)
	placeholders := strings.NewReplacer(
		"{host}", "web1", "{fqdn}", "web1.example.com", "{pid10}", "      4711", "{pid}", "4711", "{time}", writtenAt.Format(time.RFC3339),
		"{date}", writtenAt.Format(time.UnixDate), "{unix}", fmt.Sprint(writtenAt.Unix()), "{boot}", fmt.Sprint(writtenAt.Add(-30*24*time.Hour).Unix()),
	)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, fields, 6, line)
		require.Contains(t, []string{"lock", "data"}, fields[0], line)
		require.Contains(t, []string{"exclusive", "ordinary"}, fields[3], line)
		content, err := strconv.Unquote(fields[5])
		require.NoError(t, err, line)
		directory, name := path.Split(placeholders.Replace(fields[4]))
		samples = append(samples, sample{
			isLock: fields[0] == "lock", exclusive: fields[3] == "exclusive", format: fields[1], by: fields[2],
			directory: path.Base(directory), name: name, content: placeholders.Replace(content),
		})
	}
	return samples
}

// classify does what a mount and the state machine do with a name that is written once.
func (s sample) classify() (isLock bool, format formats.Format) {
	w, content := kinOf(4711), []byte(s.content)
	evidence := lockfact.Evidence{
		Name: formats.WordsOf(s.name), Directory: formats.WordsOf(s.directory), Size: len(content), Content: formats.EvidenceIn(content, w),
	}
	facts := formats.FactsOf(content, formats.Origin{Host: "web1"})
	if facts.Format == formats.PID || facts.Format == formats.None {
		facts = formats.Facts{Format: formats.None}
		if says, found := formats.StatementIn(s.name, content, w); found {
			facts = says.FactsOf(formats.Origin{Host: "web1"})
		}
	}
	if facts.Format != formats.None && evidence.Supports(facts, s.exclusive) {
		return true, facts.Format
	}
	return s.exclusive && evidence.IsEnough(), formats.None
}

// TestCorpus says how well locks are told from data: precision is how many of what is taken for a lock are locks, recall how many of the locks are
// recognised.
func TestCorpus(t *testing.T) {
	var found, wrong, missed float64
	for _, s := range corpus(t) {
		isLock, format := s.classify()
		switch {
		case isLock && s.isLock:
			found++
		case isLock:
			wrong++
			t.Logf("taken for a lock: %s, %s: %q", s.name, s.by, s.content)
		case s.isLock:
			missed++
			t.Logf("not recognised: %s, %s: %q", s.name, s.by, s.content)
		}
		if isLock == s.isLock && s.format != "-" {
			require.Equal(t, s.format, format.String(), "%s, %s: %q", s.name, s.by, s.content)
		}
		if s.format == "-" {
			require.Equal(t, formats.None, format, "%s, %s: %q", s.name, s.by, s.content)
		}
	}
	precision, recall := found/(found+wrong), found/(found+missed)
	t.Logf("precision %.3f, recall %.3f", precision, recall)
	require.GreaterOrEqual(t, precision, leastPrecision)
	require.GreaterOrEqual(t, recall, leastRecall)
}
