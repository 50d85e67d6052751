package forrst

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// Upstream passes requests on to a server that has the functions, behind a [Guard].
//
// A call that was sent and has no complete answer, because its time was over or the connection broke, may
// still be at work there: it is reported as Unfinished, also if the server was stopped in fact.
type Upstream struct {
	URL       *url.URL
	Transport http.RoundTripper // nil: http.DefaultTransport
}

// ServeHTTP answers what the server answers, or why it does not.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := passageOf(r.Context())
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	proxy := httputil.ReverseProxy{
		Transport: u.Transport,
		Rewrite: func(pass *httputil.ProxyRequest) {
			target := *u.URL
			pass.Out.URL, pass.Out.Host = &target, ""
			pass.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			u.fail(w, r, p.request, connected.Load(), err)
		},
	}
	if p.locked {
		proxy.ModifyResponse = readWhole
	}
	proxy.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

func (u *Upstream) fail(w http.ResponseWriter, r *http.Request, request *Request, connected bool, err error) {
	if !connected {
		Report(r.Context(), NotCalled)
		fail(w, http.StatusBadGateway, request, &Error{Code: Unavailable, Message: "The upstream server cannot be reached: " + err.Error()})
		return
	}
	Report(r.Context(), Unfinished)
	message := "The upstream server did not answer, and what it did is not known: " + err.Error()
	fail(w, http.StatusBadGateway, request, &Error{Code: DependencyError, Message: message})
}

// readWhole finds out whether the answer is complete.
func readWhole(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxResponse+1))
	if err != nil {
		return err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), response.Body}
	return nil
}

// ParseUpstream accepts an http or https URL.
func ParseUpstream(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("it is not an http or https URL")
	}
	return u, nil
}
