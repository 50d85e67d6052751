package forrst

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"lockfs/formats/internal/strictjson"
)

// answer is what a request is answered with.
type answer struct {
	status  int
	body    []byte
	header  http.Header // of the function's response
	foreign bool        // it is no response of this protocol, and passes as it is
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
	_, _ = w.Write(a.body) // nobody reads it if it fails
}

// recordedHead is the first line of an answer that is recorded; after it comes the body.
type recordedHead struct {
	Status  int         `json:"status"`
	Foreign bool        `json:"foreign,omitempty"`
	Header  http.Header `json:"header,omitempty"` // if it is foreign
}

// render is the answer to be recorded.
func (a *answer) render() []byte {
	head := recordedHead{Status: a.status, Foreign: a.foreign}
	if a.foreign {
		head.Header = a.header.Clone()
		head.Header.Del("Set-Cookie") // who sends the same request may be somebody else
	}
	line, err := json.Marshal(head)
	if err != nil {
		panic(err) // of this package's own type
	}
	return append(append(line, '\n'), a.body...)
}

// parseAnswer is the reverse of render. What a store has lost is an error to the client.
func parseAnswer(text []byte) *answer {
	var head recordedHead
	line, body, _ := bytes.Cut(text, []byte("\n"))
	if err := json.Unmarshal(line, &head); err != nil || head.Status < http.StatusOK || head.Status > 599 {
		return failed(http.StatusInternalServerError, new(Request), &Error{Code: InternalError, Message: "The recorded response is damaged"})
	}
	return &answer{status: head.Status, body: body, header: head.Header, foreign: head.Foreign}
}

// failed is the answer to a request with an error.
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

// idOf is the id of a request that is wrong otherwise, empty if it cannot be told.
func idOf(body []byte) string {
	object, err := strictjson.Parse(body)
	if err != nil {
		return ""
	}
	return object.Fields().OptionalString("id")
}

// isResponse tells a response of this protocol, whatever is wrong with it, from what others answer.
func isResponse(body []byte) bool {
	object, err := strictjson.Parse(body)
	if err != nil {
		return false
	}
	protocol, err := strictjson.Parse(object.Raw("protocol"))
	return err == nil && protocol.Is("name", ProtocolName)
}

// addExtension adds an entry to the extensions of a response and leaves every other byte as it is.
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
