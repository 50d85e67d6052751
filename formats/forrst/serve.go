package forrst

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// ServeHTTP answers a request. Answers of the protocol, also errors about a lock, have status 200. Invalid or
// impossible requests get a fitting status.
func (run *Runner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(w, http.StatusMethodNotAllowed, new(Request), &Error{Code: InvalidRequest, Message: "send the request with POST"})
		return
	}
	body, err := run.readBody(w, r)
	if err != nil {
		status := http.StatusBadRequest
		large := new(http.MaxBytesError)
		switch {
		case errors.As(err, &large):
			status, err = http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", large.Limit)
		case errors.Is(err, os.ErrDeadlineExceeded):
			status, err = http.StatusRequestTimeout, errors.New("the body of the request did not arrive in time: send it at once")
		}
		fail(w, status, new(Request), newInvalid(err))
		return
	}
	request, err := ParseRequest(body)
	if err != nil {
		fail(w, http.StatusBadRequest, &Request{ID: idOf(body)}, newInvalid(err))
		return
	}
	r = r.Clone(r.Context())
	r.Header.Del(TokenHeader)
	run.serve(w, r, request, body)
}

// readBody reads the body of a request within ReadTimeout. A writer without deadlines, as in tests, has no
// limit.
func (run *Runner) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := run.ReadTimeout
	if limit == 0 {
		limit = DefaultReadTimeout
	}
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Time{}) // left from the previous request on this connection
	_ = connection.SetReadDeadline(time.Now().Add(limit))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequest))
	if err == nil {
		_ = connection.SetReadDeadline(time.Time{})
	}
	return body, err
}

func (run *Runner) serve(w http.ResponseWriter, r *http.Request, request *Request, body []byte) {
	if do := systemFunctions[request.Call.Function]; do != nil {
		run.system(w, r, request, body, do)
		return
	}
	options, err := request.LockOptions()
	key := ""
	if err == nil && options != nil {
		key, err = options.FullKey(request.Call.Function)
	}
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, request, newInvalid(err))
	case run.Next == nil:
		message := "there is no function " + request.Call.Function
		fail(w, http.StatusNotFound, request, &Error{Code: FunctionNotFound, Message: message})
	default:
		run.pass(w, r, &call{runner: run, request: request, options: options, key: key, body: body})
	}
}

// pass passes a call on, with its lock if it asks for one.
func (run *Runner) pass(w http.ResponseWriter, r *http.Request, c *call) {
	leave, ok := enter(&run.calls, run.MaxCalls)
	if !ok {
		crowded(w, c.request, run.MaxCalls, "are under way")
		return
	}
	defer leave()
	if c.options == nil {
		run.Next.ServeHTTP(w, passOn(r.Context(), r, c.body, &passage{request: c.request}))
		return
	}
	c.serve(w, r)
}
