package forrst

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"lockfs/formats/internal/strictjson"
)

// answer is the answer to a request.
type answer struct {
	status  int
	body    []byte
	header  http.Header // of the function's response
	foreign bool        // not a response of this protocol: it passes unchanged
}

func (a *answer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} {
		w.Header().Del(name) // of another message
	}
	if !a.foreign {
		w.Header().Del("Content-Encoding")
		w.Header().Del("Etag")
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // after an error there is no reader
}

// recordedHead is the first line of a recorded answer; the body follows.
type recordedHead struct {
	Status  int         `json:"status"`
	Foreign bool        `json:"foreign,omitempty"`
	Header  http.Header `json:"header,omitempty"` // if it is foreign
}

// render returns the answer in recorded form.
func (a *answer) render() []byte {
	head := recordedHead{Status: a.status, Foreign: a.foreign}
	if a.foreign {
		head.Header = a.header.Clone()
		head.Header.Del("Set-Cookie") // another client may send the same request
	}
	line, err := json.Marshal(head)
	if err != nil {
		panic(err) // of this package's own type
	}
	return append(append(line, '\n'), a.body...)
}

// parseAnswer is the reverse of render. A damaged record is an error to the client.
func parseAnswer(text []byte) *answer {
	var head recordedHead
	line, body, _ := bytes.Cut(text, []byte("\n"))
	if err := json.Unmarshal(line, &head); err != nil || head.Status < http.StatusOK || head.Status > 599 {
		return failed(http.StatusInternalServerError, new(Request), &Error{Code: InternalError, Message: "The recorded response is damaged"})
	}
	return &answer{status: head.Status, body: body, header: head.Header, foreign: head.Foreign}
}

// failed returns an answer with an error.
func failed(status int, request *Request, e *Error) *answer {
	reply := request.Reply(nil)
	reply.Errors = []*Error{e}
	return rendered(status, reply)
}

func rendered(status int, reply *Response) *answer {
	body, err := json.Marshal(reply)
	if err != nil {
		panic(err) // of this package's own types
	}
	return &answer{status: status, body: append(body, '\n')}
}

func write(w http.ResponseWriter, status int, reply *Response) { rendered(status, reply).write(w) }

func fail(w http.ResponseWriter, status int, request *Request, e *Error) {
	failed(status, request, e).write(w)
}

// idOf returns the id of an otherwise invalid request; empty if unknown.
func idOf(body []byte) string {
	object, err := strictjson.Parse(body)
	if err != nil {
		return ""
	}
	return object.Fields().OptionalString("id")
}

// isResponse reports whether a body is a response of this protocol, even an invalid one.
func isResponse(body []byte) bool {
	object, err := strictjson.Parse(body)
	if err != nil {
		return false
	}
	protocol, err := strictjson.Parse(object.Raw("protocol"))
	return err == nil && protocol.Is("name", ProtocolName)
}

// addExtension adds an entry to the extensions of a response, with all other bytes unchanged.
func addExtension(body, entry []byte) ([]byte, error) {
	object, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}
	extensions := bytes.TrimSpace(object.Raw("extensions"))
	switch {
	case extensions != nil && extensions[0] != '[':
		return nil, errors.New("extensions is not an array")
	case extensions != nil:
		before := bytes.TrimSpace(extensions[1 : len(extensions)-1])
		if len(before) > 0 {
			before = append(bytes.Clone(before), ',')
		}
		return object.Replace("extensions", fmt.Appendf(nil, "[%s%s]", before, entry)), nil
	case object.Has("extensions"): // null
		return object.Replace("extensions", fmt.Appendf(nil, "[%s]", entry)), nil
	}
	end := bytes.LastIndexByte(body, '}')
	members := bytes.TrimSpace(body[bytes.IndexByte(body, '{')+1 : end])
	comma := ","
	if len(members) == 0 {
		comma = ""
	}
	return fmt.Appendf(nil, "%s%s\"extensions\":[%s]%s", bytes.TrimRight(body[:end], " \t\r\n"), comma, entry, body[end:]), nil
}
