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

// Size is a flag for a number of bytes, such as 512M, 2G or 2GiB.
func Size(value *uint64) pflag.Value { return sizeFlag{value} }

type sizeFlag struct{ value *uint64 }

func (f sizeFlag) Set(text string) error {
	number, shift := strings.TrimSuffix(strings.TrimSuffix(text, "B"), "i"), 0
	if number != "" {
		if unit := strings.IndexByte(sizeUnits, number[len(number)-1]); unit >= 0 {
			number, shift = number[:len(number)-1], 10*(unit+1)
		}
	}
	size, err := strconv.ParseUint(number, 10, 64)
	if err != nil || size > math.MaxInt64>>shift {
		return errors.New("give a number of bytes, such as 512M or 2G")
	}
	*f.value = size << shift
	return nil
}

func (f sizeFlag) String() string {
	if f.value == nil || *f.value == 0 {
		return ""
	}
	return strconv.FormatUint(*f.value, 10)
}

func (sizeFlag) Type() string { return "size" }

// SizeText formats a number of bytes with a unit.
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

// OnOff is a flag with the values on and off.
func OnOff(value *bool) pflag.Value { return onOffFlag{value} }

type onOffFlag struct{ value *bool }

func (f onOffFlag) Set(text string) error {
	if text != "on" && text != "off" {
		return errors.New("give on or off")
	}
	*f.value = text == "on"
	return nil
}

func (f onOffFlag) String() string {
	if f.value != nil && *f.value {
		return "on"
	}
	return "off"
}

func (onOffFlag) Type() string { return "on|off" }
