package forrst

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
)

// Unit is the unit of a Duration.
type Unit string

// The units.
const (
	Millisecond Unit = "millisecond"
	Second      Unit = "second"
	Minute      Unit = "minute"
	Hour        Unit = "hour"
	Day         Unit = "day"  // 24 hours
	Week        Unit = "week" // 7 days
)

var lengths = map[Unit]time.Duration{
	Millisecond: time.Millisecond,
	Second:      time.Second,
	Minute:      time.Minute,
	Hour:        time.Hour,
	Day:         24 * time.Hour,
	Week:        7 * 24 * time.Hour,
}

// Duration is a length of time in the protocol's form, such as {"value": 30, "unit": "second"}.
type Duration struct {
	Value int64 `json:"value"`
	Unit  Unit  `json:"unit"`
}

// DurationOf writes d in the largest unit up to hours without remainder. It drops fractions of a millisecond.
func DurationOf(d time.Duration) Duration {
	for _, unit := range [...]Unit{Hour, Minute, Second} {
		if d != 0 && d%lengths[unit] == 0 {
			return Duration{int64(d / lengths[unit]), unit}
		}
	}
	return Duration{int64(d / time.Millisecond), Millisecond}
}

// Duration converts d. A valid Duration is never out of range.
func (d Duration) Duration() time.Duration { return time.Duration(d.Value) * lengths[d.Unit] }

// Validate refuses unknown units, negative values, and more than 292 years.
func (d Duration) Validate() error {
	length, ok := lengths[d.Unit]
	switch {
	case !ok:
		problem := fmt.Sprintf("%q is none of millisecond, second, minute, hour, day and week", d.Unit)
		return &lockfact.FieldError{Field: "unit", Problem: problem}
	case d.Value < 0:
		return &lockfact.FieldError{Field: "value", Problem: "must not be negative"}
	case d.Value > math.MaxInt64/int64(length):
		return &lockfact.FieldError{Field: "value", Problem: "is out of range"}
	}
	return nil
}

// String returns d in words: "5 seconds".
func (d Duration) String() string {
	if d.Value == 1 {
		return fmt.Sprintf("1 %s", d.Unit)
	}
	return fmt.Sprintf("%d %ss", d.Value, d.Unit)
}

// parseDuration reads the duration in a member of an options object; nil if raw is nil.
func parseDuration(field string, raw json.RawMessage) (*Duration, error) {
	if raw == nil {
		return nil, nil
	}
	object, err := strictjson.Parse(raw)
	if err != nil {
		return nil, within(field, err)
	}
	f := object.Fields()
	d := &Duration{Value: f.Int("value"), Unit: Unit(f.String("unit"))}
	if err := f.Err(); err != nil {
		return nil, within(field, err)
	}
	if err := d.Validate(); err != nil {
		return nil, within(field, err)
	}
	return d, nil
}
