package forrst

import (
	"encoding/json"
	"strings"

	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
)

// URN is the name of the extension.
const URN = "urn:forrst:ext:atomicLock"

// Scope is the set of requests that share a key.
type Scope string

// The scopes.
const (
	ScopeFunction Scope = "function" // the requests to one function; the default
	ScopeGlobal   Scope = "global"   // all requests
)

// Options is the extension's part of a request ("Options (Request)"). Parsed options have defaults filled in,
// except for an owner, because the server makes it.
type Options struct {
	Key         string    `json:"key"`
	TTL         Duration  `json:"ttl"`
	Scope       Scope     `json:"scope,omitempty"`
	Block       *Duration `json:"block,omitempty"` // time to wait; nil: none
	Owner       string    `json:"owner,omitempty"`
	AutoRelease *bool     `json:"auto_release,omitempty"` // nil: true
}

// optionNames are all options.
var optionNames = []string{"key", "ttl", "scope", "block", "owner", "auto_release"}

// ParseOptions reads and validates options. It refuses unknown options: a misspelt one could mean another
// lock. If one field is at fault, the error is a [lockfact.FieldError] such as "ttl.unit: ...".
func ParseOptions(raw json.RawMessage) (*Options, error) {
	object, err := strictjson.Parse(raw)
	if err != nil {
		return nil, err
	}
	if name, found := object.Other(optionNames...); found {
		problem := "there is no such option, only " + strings.Join(optionNames, ", ")
		return nil, &lockfact.FieldError{Field: lockfact.HolderName(name), Problem: problem}
	}
	f := object.Fields()
	o := &Options{
		Key:         f.String("key"),
		Scope:       Scope(f.OptionalString("scope")),
		Owner:       f.OptionalString("owner"),
		AutoRelease: f.OptionalBool("auto_release"),
	}
	ttl, block := f.Object("ttl"), f.OptionalObject("block")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if object.Raw("owner") != nil && o.Owner == "" {
		return nil, &lockfact.FieldError{Field: "owner", Problem: "must not be empty"}
	}
	if object.Raw("scope") == nil {
		o.Scope = ScopeFunction
	}
	duration, err := parseDuration("ttl", ttl)
	if err != nil {
		return nil, err
	}
	o.TTL = *duration
	if o.Block, err = parseDuration("block", block); err != nil {
		return nil, err
	}
	return o, o.Validate()
}

// Validate returns a [lockfact.FieldError] for the first invalid field.
func (o *Options) Validate() error {
	if o.Key == "" {
		return &lockfact.FieldError{Field: "key", Problem: "is required"}
	}
	if err := o.TTL.Validate(); err != nil {
		return within("ttl", err)
	}
	if o.TTL.Value == 0 {
		return &lockfact.FieldError{Field: "ttl.value", Problem: "must be at least 1"}
	}
	if o.Scope != ScopeFunction && o.Scope != ScopeGlobal {
		return &lockfact.FieldError{Field: "scope", Problem: `must be "function" or "global"`}
	}
	if o.Block != nil {
		if err := o.Block.Validate(); err != nil {
			return within("block", err)
		}
	}
	if o.Owner != "" {
		return ValidateOwner(o.Owner)
	}
	return nil
}

// keyPrefix is the begin of each full key.
const keyPrefix = "lock:"

// Releases reports whether the lock ends with the call, that is, auto_release is not false.
func (o *Options) Releases() bool { return o.AutoRelease == nil || *o.AutoRelease }

// FullKey returns the key of the lock ("Scope Behavior"): lock:{function}:{key}, or lock:{key} for the global
// scope. The error is that of FileName, for the field key.
func (o *Options) FullKey(function string) (string, error) {
	key := keyPrefix + o.Key
	if o.Scope != ScopeGlobal {
		key = keyPrefix + function + ":" + o.Key
	}
	_, err := FileName(key)
	return key, err
}
