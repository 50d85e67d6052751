package formats_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/formats"
	"lockfs/test/fuzzing"
)

var writtenAt = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// kinOf is a writer on web1.example.com whose family are these processes.
func kinOf(pids ...int) formats.Writer {
	return formats.Writer{
		Hosts: []string{"web1.example.com", "node-a"}, Now: writtenAt,
		IsKin: func(pid int) bool {
			for _, kin := range pids {
				if pid == kin {
					return true
				}
			}
			return false
		},
	}
}

// first is the first piece of evidence; empty: there is none.
func first(pieces []string) string { return strings.Join(pieces[:min(1, len(pieces))], "") }

func TestEvidence(t *testing.T) {
	for content, want := range map[string]string{ // the first piece
		"1234\nweb1\n":                         "names its host web1",
		"WEB1":                                 "names its host web1",
		"root@web1.example.com:77":             "names its host web1.example.com",
		"web1.other.org":                       "",
		"held on web1.":                        "names its host web1",
		"host=NODE-A\x00":                      "names its host node-a",
		"node-a.example.com/1":                 "names its host node-a",
		"node-a.txt":                           "",
		"node_a":                               "",
		"web1/f0000083:1234":                   "names its host web1", // Mercurial's
		"web10 web1-x xweb1 web1x éweb1":       "",
		"4711":                                 "names process 4711 of its writer",
		"owner: pid 4711.":                     "names process 4711 of its writer",
		`{"pid":4711}`:                         "names process 4711 of its writer",
		"root@other.4711:1600000000":           "names process 4711 of its writer", // Emacs's
		"other-4711 4712":                      "names process 4711 of its writer",
		"4711.other":                           "names process 4711 of its writer",
		"pid_4711":                             "names process 4711 of its writer",
		"x4711 4711x 04711 47110 1.4711 -4711": "",
		"2026-4711":                            "",
		"pid 4194305":                          "",
		"":                                     "",
		"locked":                               "",
	} {
		require.Equal(t, want, first(formats.EvidenceIn([]byte(content), kinOf(4711, 4194305, 1))), content)
	}
}

// TestPiecesOfEvidenceAreOfDifferentKinds, and no more are looked for than make a lock.
func TestPiecesOfEvidenceAreOfDifferentKinds(t *testing.T) {
	at := writtenAt.Format(time.RFC3339)
	for content, want := range map[string][]string{
		"web1 node-a web1.example.com": {"names its host web1"},
		"4711 web1":                    {"names its host web1", "names process 4711 of its writer"},
		"4711 4712":                    {"names process 4711 of its writer"},
		at + " " + at:                  {"has the time " + at},
		at + " 4711":                   {"has the time " + at, "names process 4711 of its writer"},
		at + " web1 4711":              {"names its host web1", "has the time " + at},
	} {
		require.Equal(t, want, formats.EvidenceIn([]byte(content), kinOf(4711, 4712)), content)
	}
}

func TestEvidenceOfTime(t *testing.T) {
	at := writtenAt.Add(-time.Minute)
	zone := time.FixedZone("IST", 5*3600+1800)
	west := time.FixedZone("", -3*3600)
	seconds := fmt.Sprint(at.Unix())
	for _, content := range []string{
		seconds, seconds + "\n", "at " + seconds + ", by me", "time=" + seconds, seconds + ".5", seconds + ".123456789",
		fmt.Sprint(at.UnixMilli()), fmt.Sprint(at.UnixMicro()), fmt.Sprint(at.UnixNano()),
		"other.77:" + seconds, "lock-" + seconds, "[" + seconds + ", 7]",
		at.Format(time.RFC3339), at.In(zone).Format(time.RFC3339), at.In(west).Format(time.RFC3339Nano),
		at.Format("2006-01-02T15:04:05"), at.Format("2006-01-02 15:04:05"), at.Format("2006-01-02 15:04"),
		at.In(zone).Format("2006-01-02 15:04:05 -0700"), at.In(west).Format("2006-01-02T15:04:05.000000-07"),
		at.Format("2006-01-02 15:04:05,000 INFO"), "`" + at.Format("2006-01-02T15:04Z") + "`",
		at.Format(time.RFC1123Z), at.In(zone).Format(time.RFC1123Z), at.Format(time.RFC1123), at.Format("2 Jan 2006 15:04 -0700"),
		at.Format(time.UnixDate), at.Format(time.ANSIC), at.Format("Mon Jan  2 15:04:05 2006"),
		at.In(west).Format("Mon Jan _2 15:04:05 -07 2006"), at.Format("Mon Jan _2 03:04:05 PM MST 2006"),
		"locked " + at.Format(time.UnixDate) + " by x",
	} {
		require.Equal(t, "has the time ", first(formats.EvidenceIn([]byte(content), kinOf()))[:13], content)
	}
	require.Equal(t, "has the time 2026-11-22T09:59:00Z", first(formats.EvidenceIn([]byte(at.In(zone).Format(time.RFC1123Z)), kinOf())))
	require.Equal(t, "has the time 2026-11-22T09:59:00Z",
		first(formats.EvidenceIn([]byte(at.In(west).Format("Mon Jan _2 15:04:05 -07 2006")), kinOf())))
}

// The 1st of a month stands with two spaces or one.
func TestEvidenceOfTheFirstOfAMonth(t *testing.T) {
	w := formats.Writer{Now: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)}
	for _, content := range []string{
		"Tue Dec  1 10:00:00 UTC 2026", "Tue Dec 1 10:00:00 2026", "Tue Dec 01 10:00:00 CET 2026", "1 Dec 2026 10:00 Z",
	} {
		require.Equal(t, "has the time 2026-12-01T10:00:00Z", first(formats.EvidenceIn([]byte(content), w)), content)
	}
}

func TestEvidenceIsOnlyATimeWithinADay(t *testing.T) {
	layouts := []string{time.RFC3339, "2006-01-02 15:04:05 -0700", time.RFC1123Z, time.UnixDate, time.ANSIC}
	zone := time.FixedZone("", 14*3600)
	for _, layout := range layouts {
		for age, want := range map[time.Duration]bool{
			0: true, 24 * time.Hour: true, -24 * time.Hour: true, 24*time.Hour + time.Second: false,
			-24*time.Hour - time.Second: false, 100 * 365 * 24 * time.Hour: false,
		} {
			at := writtenAt.Add(-age)
			if strings.Contains(layout, "07") {
				at = at.In(zone)
			}
			content := at.Format(layout)
			require.Equal(t, want, formats.EvidenceIn([]byte(content), kinOf()) != nil, content)
			for _, n := range []int64{at.Unix(), at.UnixMilli(), at.UnixMicro(), at.UnixNano()} {
				require.Equal(t, want, formats.EvidenceIn(fmt.Append(nil, n), kinOf()) != nil, "%d", n)
			}
		}
	}
	for _, content := range []string{
		"2026-11-22", "10:00:00", "Nov 22", "22 Nov 2026", "20261122", "2026-13-22T10:00:00Z",
		"2026-11-22T25:00:00Z", "2026-11-32T10:00:00Z", "Nov 22 10:00:00", "Nov 22 10:00:00 2026x"[:17], "anF 22 10:00:00 2026",
		fmt.Sprint("x", writtenAt.Unix()), fmt.Sprint(writtenAt.Unix(), "x"), fmt.Sprint(writtenAt.UnixNano(), "0"),
		"99999999999999999999", "9999999999999999999",
	} {
		require.Empty(t, formats.EvidenceIn([]byte(content), kinOf()), content)
	}
	epoch := formats.Writer{Now: time.Unix(1000, 0)}
	require.Empty(t, formats.EvidenceIn([]byte("1000"), epoch), "a counter on a host whose clock was never set")
}

func TestEvidenceNeedsAName(t *testing.T) {
	for _, host := range []string{"a", "", "12", "1.2", "a.b"} {
		w := formats.Writer{Hosts: []string{host}}
		require.Empty(t, formats.EvidenceIn([]byte("a 12 "+strings.Repeat("x", 3)), w), host)
	}
	require.Equal(t, "names its host a.b", first(formats.EvidenceIn([]byte("a.b"), formats.Writer{Hosts: []string{"a.b"}})))
	require.Equal(t, "names its host build_7", first(formats.EvidenceIn([]byte("on build_7"), formats.Writer{Hosts: []string{"build_7"}})))
}

// To ask for a process is dear.
func TestEvidenceAsksForFewProcesses(t *testing.T) {
	var asked []int
	w := kinOf()
	w.IsKin = func(pid int) bool { asked = append(asked, pid); return false }
	require.Empty(t, formats.EvidenceIn([]byte("10 9 10 8 7 6 5 4 3 2"), w))
	require.Equal(t, []int{10, 9, 8, 7, 6, 5, 4, 3}, asked)
	asked = nil
	require.NotEmpty(t, formats.EvidenceIn([]byte("10 web1 "+writtenAt.Format(time.RFC3339)), w))
	require.Empty(t, asked)
	w.IsKin = nil
	require.Empty(t, formats.EvidenceIn([]byte("10"), w))
}

func TestNoEvidenceInLongContents(t *testing.T) {
	content := "web1" + strings.Repeat(" ", 508)
	require.NotEmpty(t, formats.EvidenceIn([]byte(content), kinOf()))
	require.Empty(t, formats.EvidenceIn([]byte(content+" "), kinOf()))
}

// What surrounds a word does not matter, as long as it is no part of it.
func TestEvidenceAnywhere(t *testing.T) {
	words := []string{"web1", "4711", fmt.Sprint(writtenAt.Unix()), writtenAt.Format(time.UnixDate), writtenAt.Format(time.RFC3339)}
	rapid.Check(t, func(t *rapid.T) {
		around := rapid.StringMatching(`[\x00-\x2c/:;<=>?@_\[\]{}|~]{0,40}`)
		content := around.Draw(t, "before") + rapid.SampledFrom(words).Draw(t, "word") + around.Draw(t, "after")
		require.NotEmpty(t, formats.EvidenceIn([]byte(content), kinOf(4711)), "%q", content)
	})
}

func FuzzEvidenceIn(f *testing.F) {
	for _, content := range []string{
		"web1.example.com:4711", "2026-11-22T10:00:00.5+01:00", "Sun, 22 Nov 2026 10:00:00 +0000",
		"Sun Nov 22 10:00:00 UTC 2026", "1795341600.5", "\xff\xfe4711",
	} {
		f.Add([]byte(content))
	}
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		asked := 0
		w := kinOf()
		w.IsKin = func(pid int) bool {
			asked++
			require.True(t, pid >= 1 && pid <= 1<<22)
			return false
		}
		evidence := strings.Join(formats.EvidenceIn(content, w), "")
		require.LessOrEqual(t, asked, 8)
		require.LessOrEqual(t, len(evidence), 200)
		require.True(t, utf8.ValidString(evidence))
	})
}

func BenchmarkEvidenceIn(b *testing.B) {
	w := kinOf()
	w.Hosts = append(w.Hosts, "another")
	for name, content := range map[string]string{
		"host":     "4711\nweb1.example.com\n",
		"time":     "held by somebody since 2026-11-22T10:00Z",
		"nothing":  "the quick brown fox jumps over the dogs.",
		"numbers":  "1 22 333 4444 55555 666666 7777777 1 2 3",
		"dates":    "Jan 22 2001 10:00 22 Jan 2001 10:00 2001",
		"long":     strings.Repeat("Nov 22 10:00:00 UTC 2001 ", 20),
		"too long": strings.Repeat("x", 513),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				formats.EvidenceIn([]byte(content), w)
			}
		})
	}
}
