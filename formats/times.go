package formats

import (
	"strconv"
	"strings"
	"time"
)

// timeNear returns the first time in a text within a day of near. It reads seconds since the Unix epoch, with
// a fraction or as milliseconds, microseconds or nanoseconds. It also reads RFC 3339, ISO 8601 with - and :,
// RFC 2822, ctime(3), and the default output of date(1). A time without a zone, or with a zone's name, counts
// as UTC.
func timeNear(text string, near time.Time) (time.Time, bool) {
	for i := range len(text) {
		if i > 0 && inWord(text[i-1]) {
			continue
		}
		var t time.Time
		found := false
		switch {
		case isDigit(text[i]):
			t, found = timeOfDigits(text[i:])
		case 'A' <= text[i] && text[i] <= 'Z':
			t, found = dateTime(text[i:])
		}
		if found && near.Sub(t).Abs() <= 24*time.Hour {
			return t, true
		}
	}
	return time.Time{}, false
}

// timeOfDigits reads a time at a digit. The number of digits selects the kind.
func timeOfDigits(text string) (time.Time, bool) {
	digits := 1
	for digits < len(text) && digits < 20 && isDigit(text[digits]) {
		digits++
	}
	switch {
	case digits <= 2 && digits < len(text) && text[digits] == ' ':
		return mailTime(text)
	case digits == 4 && digits < len(text) && text[digits] == '-':
		return isoTime(text)
	case digits < 9 || digits > 19 || digits < len(text) && inWord(text[digits]):
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	switch {
	case digits <= 11:
		return time.Unix(n, 0), true
	case digits <= 14:
		return time.UnixMilli(n), true
	case digits <= 17:
		return time.UnixMicro(n), true
	}
	return time.Unix(0, n), err == nil
}

// isoTime reads 2026-11-22T10:00:00Z. The T may be a space, and seconds, fraction and zone are optional.
func isoTime(text string) (time.Time, bool) {
	r := timeReader{text: text}
	year := r.number(4, 4)
	r.oneOf("-")
	month := r.number(2, 2)
	r.oneOf("-")
	day := r.number(2, 2)
	r.oneOf("Tt ")
	clock := r.clock()
	return r.time(year, month, day, clock-r.zone())
}

// mailTime reads 22 Nov 2026 10:00:00 +0000, possibly after the name of a weekday.
func mailTime(text string) (time.Time, bool) {
	r := timeReader{text: text}
	day := r.number(1, 2)
	r.oneOf(" ")
	month := r.month()
	if r.oneOf(" "); r.bad {
		return time.Time{}, false
	}
	year := r.number(4, 4)
	r.oneOf(" ")
	clock := r.clock()
	return r.time(year, month, day, clock-r.zone())
}

// dateTime reads Nov 22 10:00:00 UTC 2026, also without a zone. Other parts of date(1)'s output, such as AM,
// change less than a day.
func dateTime(text string) (time.Time, bool) {
	r := timeReader{text: text}
	month := r.month()
	if r.oneOf(" "); r.bad {
		return time.Time{}, false
	}
	r.text = strings.TrimPrefix(r.text, " ")
	day := r.number(1, 2)
	r.oneOf(" ")
	clock := r.clock()
	clock -= r.zone()
	for range 2 {
		if after, found := strings.CutPrefix(r.text, " "); found && after != "" && !isDigit(after[0]) {
			word, _, _ := strings.Cut(after[:min(len(after), 8)], " ")
			r.text = after[len(word):]
		}
	}
	r.oneOf(" ")
	return r.time(r.number(4, 4), month, day, clock)
}

// timeReader reads the parts of a time from the beginning of a text.
type timeReader struct {
	text string
	bad  bool // an expected part was missing
}

// number reads a decimal number of least to most digits.
func (r *timeReader) number(least, most int) (n int) {
	digits := 0
	for digits < len(r.text) && isDigit(r.text[digits]) && digits <= most {
		n = 10*n + int(r.text[digits]-'0')
		digits++
	}
	r.bad = r.bad || digits < least || digits > most
	r.text = r.text[digits:]
	return n
}

func (r *timeReader) oneOf(bytes string) {
	if r.text == "" || strings.IndexByte(bytes, r.text[0]) < 0 {
		r.bad = true
		return
	}
	r.text = r.text[1:]
}

func (r *timeReader) month() int {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	if len(r.text) < 3 {
		r.bad = true
		return 0
	}
	at := strings.Index(names, r.text[:3])
	r.bad = r.bad || at < 0 || at%3 != 0
	r.text = r.text[3:]
	return at/3 + 1
}

// clock reads 10:00, 10:00:00 or 10:00:00.000, and returns the time since midnight in whole seconds.
func (r *timeReader) clock() time.Duration {
	hour := r.number(1, 2)
	r.oneOf(":")
	minute, second := r.number(2, 2), 0
	if strings.HasPrefix(r.text, ":") {
		r.text = r.text[1:]
		second = r.number(2, 2)
		if len(r.text) > 1 && (r.text[0] == '.' || r.text[0] == ',') && isDigit(r.text[1]) {
			r.text = strings.TrimLeft(r.text[1:], "0123456789")
		}
	}
	r.bad = r.bad || hour > 24 || minute > 59 || second > 60
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
}

// zone reads +01:00, +0100 or +01, if present, and returns the offset from UTC.
func (r *timeReader) zone() time.Duration {
	text := strings.TrimPrefix(r.text, " ")
	if len(text) < 3 || text[0] != '+' && text[0] != '-' || !isDigit(text[1]) || !isDigit(text[2]) {
		return 0
	}
	zone := timeReader{text: text[1:3]}
	ahead := time.Duration(zone.number(2, 2)) * time.Hour
	r.text = text[3:]
	zone = timeReader{text: strings.TrimPrefix(r.text, ":")}
	if minutes := zone.number(2, 2); !zone.bad {
		ahead += time.Duration(minutes) * time.Minute
		r.text = zone.text
	}
	if text[0] == '-' {
		return -ahead
	}
	return ahead
}

func (r *timeReader) time(year, month, day int, clock time.Duration) (time.Time, bool) {
	if r.bad || month < 1 || month > 12 || day < 1 || day > 31 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Add(clock), true
}
