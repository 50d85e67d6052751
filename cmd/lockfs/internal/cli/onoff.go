package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

// OnOff is a flag that is on or off.
func OnOff(value *bool) pflag.Value { return onOffFlag{value} }

type onOffFlag struct{ value *bool }

// Set is part of pflag.Value.
func (f onOffFlag) Set(text string) error {
	if text != "on" && text != "off" {
		return errors.New("it is on or off")
	}
	*f.value = text == "on"
	return nil
}

// String is part of pflag.Value.
func (f onOffFlag) String() string {
	if f.value != nil && *f.value {
		return "on"
	}
	return "off"
}

// Type is part of pflag.Value.
func (onOffFlag) Type() string { return "on|off" }
