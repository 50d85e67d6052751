package forrst

import (
	"encoding/json"
	"fmt"

	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
)

// The protocol of this package.
const (
	ProtocolName    = "forrst"
	ProtocolVersion = "0.1.0"
)

// Protocol is the protocol of a message.
type Protocol struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Request is a call. It has only the members that the extension needs, so forward the original text.
type Request struct {
	Protocol   Protocol    `json:"protocol"`
	ID         string      `json:"id"`
	Call       Call        `json:"call"`
	Extensions []Extension `json:"extensions,omitempty"`
}

// Call is the function of a request and its arguments.
type Call struct {
	Function  string          `json:"function"`
	Version   string          `json:"version,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object, or nil
}

// Extension is an entry in a message's extensions: options in a request, data in a response.
type Extension struct {
	URN     string          `json:"urn"`
	Options json.RawMessage `json:"options,omitempty"`
	Data    any             `json:"data,omitempty"`
}

// Response is the answer to a Request. A nil Result is null.
type Response struct {
	Protocol   Protocol    `json:"protocol"`
	ID         string      `json:"id"`
	Result     any         `json:"result"`
	Errors     []*Error    `json:"errors,omitempty"`
	Extensions []Extension `json:"extensions,omitempty"`
}

// Reply returns the response to a request, with its id.
func (r *Request) Reply(result any) *Response {
	return &Response{Protocol: Protocol{ProtocolName, ProtocolVersion}, ID: r.ID, Result: result}
}

// ParseRequest reads a request and checks the members that the extension needs: protocol, id, function, and
// the form of the extensions. If one field is at fault, the error is a [lockfact.FieldError] such as
// "call.function: is required".
func ParseRequest(body []byte) (*Request, error) {
	object, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}
	f := object.Fields()
	r := &Request{ID: f.String("id")}
	protocol, call := f.Object("protocol"), f.Object("call")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if r.Protocol, err = parseProtocol(protocol); err != nil {
		return nil, within("protocol", err)
	}
	if r.Call, err = parseCall(call); err != nil {
		return nil, within("call", err)
	}
	if r.Extensions, err = parseExtensions(object.Raw("extensions")); err != nil {
		return nil, err
	}
	return r, nil
}

func parseProtocol(raw json.RawMessage) (Protocol, error) {
	object, err := strictjson.Parse(raw)
	if err != nil {
		return Protocol{}, err
	}
	f := object.Fields()
	p := Protocol{Name: f.String("name"), Version: f.String("version")}
	switch {
	case f.Err() != nil:
		return Protocol{}, f.Err()
	case p.Name != ProtocolName:
		return Protocol{}, &lockfact.FieldError{Field: "name", Problem: `must be "forrst"`}
	case p.Version != ProtocolVersion:
		return Protocol{}, &lockfact.FieldError{Field: "version", Problem: `must be "0.1.0"`}
	}
	return p, nil
}

func parseCall(raw json.RawMessage) (Call, error) {
	object, err := strictjson.Parse(raw)
	if err != nil {
		return Call{}, err
	}
	f := object.Fields()
	c := Call{
		Function:  f.String("function"),
		Version:   f.OptionalString("version"),
		Arguments: f.OptionalObject("arguments"),
	}
	if f.Err() == nil && c.Function == "" {
		return Call{}, &lockfact.FieldError{Field: "function", Problem: "must not be empty"}
	}
	return c, f.Err()
}

func parseExtensions(raw json.RawMessage) ([]Extension, error) {
	if raw == nil {
		return nil, nil
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, &lockfact.FieldError{Field: "extensions", Problem: "must be an array"}
	}
	extensions := make([]Extension, len(entries))
	for i, entry := range entries {
		object, err := strictjson.Parse(entry)
		if err != nil {
			return nil, within(fmt.Sprintf("extensions[%d]", i), err)
		}
		f := object.Fields()
		extensions[i] = Extension{URN: f.String("urn"), Options: f.OptionalObject("options")}
		if err := f.Err(); err != nil {
			return nil, within(fmt.Sprintf("extensions[%d]", i), err)
		}
	}
	return extensions, nil
}

// LockOptions returns the options of the request's atomic lock, with a valid full key; nil if it has none.
// Two atomic locks are an error.
func (r *Request) LockOptions() (*Options, error) {
	var options *Options
	for i, e := range r.Extensions {
		if e.URN != URN {
			continue
		}
		if options != nil {
			return nil, &lockfact.FieldError{Field: "extensions", Problem: "has " + URN + " twice"}
		}
		if e.Options == nil {
			return nil, &lockfact.FieldError{Field: fmt.Sprintf("extensions[%d].options", i), Problem: "is required"}
		}
		var err error
		if options, err = ParseOptions(e.Options); err == nil {
			_, err = options.FullKey(r.Call.Function)
		}
		if err != nil {
			return nil, within(fmt.Sprintf("extensions[%d].options", i), err)
		}
	}
	return options, nil
}
