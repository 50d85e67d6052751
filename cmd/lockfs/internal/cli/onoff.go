package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

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
