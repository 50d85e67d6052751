package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// sizeUnits are powers of 1024.
const sizeUnits = "KMGT"

// Size is a flag for a number of bytes: 512M, 2G, 2GiB.
func Size(value *uint64) pflag.Value { return sizeFlag{value} }

type sizeFlag struct{ value *uint64 }

// Set is part of pflag.Value.
func (f sizeFlag) Set(text string) error {
	number, shift := strings.TrimSuffix(strings.TrimSuffix(text, "B"), "i"), 0
	if number != "" {
		if unit := strings.IndexByte(sizeUnits, number[len(number)-1]); unit >= 0 {
			number, shift = number[:len(number)-1], 10*(unit+1)
		}
	}
	size, err := strconv.ParseUint(number, 10, 64)
	if err != nil || size > math.MaxInt64>>shift {
		return errors.New("it is a number of bytes, also with K, M, G or T")
	}
	*f.value = size << shift
	return nil
}

// String is part of pflag.Value.
func (f sizeFlag) String() string {
	if f.value == nil || *f.value == 0 {
		return ""
	}
	return strconv.FormatUint(*f.value, 10)
}

// Type is part of pflag.Value.
func (sizeFlag) Type() string { return "size" }

// SizeText is a number of bytes for people.
func SizeText(size uint64) string {
	if size < 1<<10 {
		return fmt.Sprintf("%d B", size)
	}
	value, unit := float64(size), -1
	for value >= 1<<10 && unit < len(sizeUnits)-1 {
		value /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, sizeUnits[unit])
}
