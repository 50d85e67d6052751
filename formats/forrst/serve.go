package forrst

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ServeHTTP answers a request. The status of a protocol's answer, also of an error about a lock, is 200; that
// of a request that cannot be understood or done is the one that fits.
func (run *Runner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(w, http.StatusMethodNotAllowed, new(Request), &Error{Code: InvalidRequest, Message: "send the request with POST"})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequest))
	if err != nil {
		status := http.StatusBadRequest
		if large := new(http.MaxBytesError); errors.As(err, &large) {
			status, err = http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", large.Limit)
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
	case options == nil:
		run.Next.ServeHTTP(w, passOn(r.Context(), r, body, &passage{request: request}))
	default:
		(&call{runner: run, request: request, options: options, key: key, body: body}).serve(w, r)
	}
}
