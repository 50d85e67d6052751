package formats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockfs/formats/pid"
)

const (
	maxEvidence = 512 // bytes; a longer content is data
	maxKin      = 8   // calls of IsKin
)

// Writer is where, when and by which processes a content was written.
type Writer struct {
	Hosts []string           // names of the writing host, short or full
	Now   time.Time          // time of the write, on that host's wall clock
	IsKin func(pid int) bool // whether a number was a pid of the writer's family at that time; nil: none was
}

// EvidenceIn returns the evidence ([lockfact.Evidence]) in a content of no format, or in the target of a
// symbolic link, for a lock of an exclusive name. The pieces, each once: a name of the writer's host as a
// whole word, a time within a day of the write, and a pid of the writer's family. They are short phrases for
// people, such as "names its host web1". A content of more than 512 bytes has none.
//
// EvidenceIn takes time linear in the length of the content. It calls IsKin last, at most eight times, and
// only if it has found less than two pieces.
func EvidenceIn(content []byte, w Writer) (pieces []string) {
	if len(content) > maxEvidence {
		return nil
	}
	text := string(content)
	if host := w.hostIn(text); host != "" {
		pieces = append(pieces, "names its host "+host)
	}
	if t, ok := timeNear(text, w.Now); ok {
		pieces = append(pieces, "has the time "+t.UTC().Format(time.RFC3339))
	}
	if len(pieces) >= 2 {
		return pieces
	}
	if number, ok := w.kinIn(text); ok {
		pieces = append(pieces, fmt.Sprintf("names process %d of its writer", number))
	}
	return pieces
}

// hostIn returns the first name of the writer's host in a text.
func (w Writer) hostIn(text string) string {
	for i := range len(text) {
		if !inName(text[i]) || i > 0 && inName(text[i-1]) {
			continue
		}
		for _, host := range w.Hosts {
			if name := nameAt(text[i:], host); name != "" {
				return name
			}
		}
	}
	return ""
}

// nameAt returns the name of a host at the beginning of a text, full or short. If only the short name is
// known, the text may add a domain of at least two parts: data.txt is no host.
func nameAt(text, host string) string {
	if host == "" || text[0]|0x20 != host[0]|0x20 && text[0] < 0x80 {
		return ""
	}
	short, _, full := strings.Cut(host, ".")
	after, found := cutName(text, host)
	if found && (after == "" || !full && after[0] == '.' && strings.Count(after, ".") >= 2) {
		return host
	}
	if after, found = cutName(text, short); full && found && after == "" {
		return short
	}
	return ""
}

// cutName returns the rest of a text's first word after a name, without the full stop of a sentence.
func cutName(text, name string) (after string, found bool) {
	if len(name) < 2 || len(text) < len(name) || !strings.EqualFold(text[:len(name)], name) || !hasLetter(name) {
		return "", false
	}
	after = text[len(name):]
	return strings.TrimRight(after[:nameEnd(after, 0)], "."), true
}

// kinIn returns the first number in a text that is a pid of the writer's family.
func (w Writer) kinIn(text string) (number int, found bool) {
	if w.IsKin == nil {
		return 0, false
	}
	asked := make([]int, 0, maxKin)
	for i := 0; i < len(text); i++ {
		end := nameEnd(text, i)
		for _, number := range numbersOf(strings.TrimRight(text[i:end], ".-")) {
			if number == 0 || slices.Contains(asked, number) {
				continue
			}
			if w.IsKin(number) {
				return number, true
			}
			if asked = append(asked, number); len(asked) == maxKin {
				return 0, false
			}
		}
		i = end
	}
	return 0, false
}

// numbersOf returns the numbers in a word that can be pids, or 0: the word itself, or the beginning or end of
// a name, as in web1.4711 and 4711-web1. Parts of 1.2.3 and 2026-11-22 are none.
func numbersOf(word string) [2]int {
	if word == "" || !isDigit(word[0]) && !isDigit(word[len(word)-1]) {
		return [2]int{}
	}
	if !hasLetter(word) {
		return [2]int{pidOf(word)}
	}
	first, last := strings.IndexAny(word, ".-"), strings.LastIndexAny(word, ".-")
	if first < 0 {
		return [2]int{}
	}
	return [2]int{pidOf(word[:first]), pidOf(word[last+1:])}
}

// pidOf returns 0 for anything but the decimal number of a possible process.
func pidOf(digits string) int {
	if len(digits) == 0 || len(digits) > 7 || digits[0] < '1' || digits[0] > '9' {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > pid.Max {
		return 0
	}
	return n
}

// nameEnd returns the position after a possible host name at i.
func nameEnd(text string, i int) int {
	for i < len(text) && inName(text[i]) {
		i++
	}
	return i
}
