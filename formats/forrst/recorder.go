package forrst

import (
	"bytes"
	"errors"
	"net/http"
)

// recorder records the response of a handler.
type recorder struct {
	header   http.Header
	status   int
	begun    bool
	body     bytes.Buffer
	overflow bool
}

func newRecorder() *recorder { return &recorder{header: make(http.Header), status: http.StatusOK} }

// Header is part of http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader is part of http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if !r.begun && status >= http.StatusOK {
		r.status, r.begun = status, true
	}
}

// Write is part of http.ResponseWriter.
func (r *recorder) Write(data []byte) (int, error) {
	r.begun = true
	if r.body.Len()+len(data) > MaxResponse {
		r.overflow = true
		return 0, errors.New("the response is too large")
	}
	return r.body.Write(data)
}
