package formats

import (
	"strconv"
	"strings"
	"time"
)

// timeNear answers the first time in a text that is within a day of another: seconds since the Unix epoch, also with a
// fraction or as milliseconds, microseconds or nanoseconds; RFC 3339 and ISO 8601 with - and :, RFC 2822, ctime(3), and
// what date(1) prints without being told how. One without a zone, or with a zone's name, is taken for UTC.
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

// timeOfDigits answers the time that begins with a digit. How many there are tells which kind it can be.
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

// isoTime reads 2026-11-22T10:00:00Z, also with a space for the T, without seconds, with a fraction and another zone or
// none.
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

// mailTime reads 22 Nov 2026 10:00:00 +0000, which the name of a weekday can stand before.
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

// dateTime reads Nov 22 10:00:00 UTC 2026, also without a zone. What else date(1) says, such as AM, changes less than a
// day.
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

// timeReader takes the parts of a time from the beginning of a text.
type timeReader struct {
	text string
	bad  bool // what was wanted was not there
}

// number takes a decimal number that has so many digits.
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

// clock takes 10:00, 10:00:00 or 10:00:00.000 and answers how long that is after midnight, in whole seconds.
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

// zone takes +01:00, +0100 or +01, if one is there, and answers how far it is ahead of UTC.
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
