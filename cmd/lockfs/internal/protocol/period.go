package protocol

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// period is the interval of --once-per: a fixed length, or a day.
type period struct {
	text   string
	length time.Duration // 0: a day
	hour   int           // at which a day begins
	minute int
	zone   *time.Location
}

const leastPeriod = time.Second

var errPeriod = errors.New("give a duration such as 15m or 6h, of whole seconds, or day@03:00, or day@03:00@Europe/Berlin")

func parsePeriod(text string) (*period, error) {
	day, isDay := strings.CutPrefix(text, "day")
	if !isDay {
		length, err := time.ParseDuration(text)
		if err != nil || length < leastPeriod || length%time.Second != 0 {
			return nil, errPeriod
		}
		return &period{text: text, length: length, zone: time.UTC}, nil
	}
	p := &period{text: text, zone: time.UTC}
	if day == "" {
		return p, nil
	}
	clock, zone, hasZone := strings.Cut(strings.TrimPrefix(day, "@"), "@")
	at, err := time.Parse("15:04", clock)
	if err != nil || day[0] != '@' || hasZone && zone == "" {
		return nil, errPeriod
	}
	p.hour, p.minute = at.Hour(), at.Minute()
	if hasZone {
		if p.zone, err = time.LoadLocation(zone); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// at returns the period that contains now; until is its exclusive end.
func (p *period) at(now time.Time) (from, until time.Time) {
	if p.length != 0 {
		length := int64(p.length / time.Second)
		since := now.Unix()
		if since %= length; since < 0 {
			since += length
		}
		from = time.Unix(now.Unix()-since, 0).UTC()
		return from, from.Add(p.length)
	}
	year, month, day := now.In(p.zone).Date()
	begin := func(day int) time.Time { return time.Date(year, month, day, p.hour, p.minute, 0, 0, p.zone).UTC() }
	if begin(day).After(now) {
		day--
	}
	return begin(day), begin(day + 1)
}

// periodFlag is an optional period.
type periodFlag struct{ value **period }

func (f periodFlag) Set(text string) (err error) {
	*f.value, err = parsePeriod(text)
	return err
}

func (f periodFlag) String() string {
	if f.value == nil || *f.value == nil {
		return ""
	}
	return fmt.Sprint((*f.value).text)
}

func (periodFlag) Type() string { return "period" }
