package forrst

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"
)

// Upstream passes requests on to a server with the functions, behind a [Runner].
//
// If the server closes the connection without an answer, the call has ended: many servers do so for a
// function that throws, and a killed server does too. If the answer is incomplete for another reason, such as
// a timeout or a network failure, the call may still run there. Upstream reports it as Unfinished.
type Upstream struct {
	URL       *url.URL
	Transport http.RoundTripper // nil: http.DefaultTransport, and a new connection for each call with a lock
}

// connectTimeout limits the time to connect for a call with a lock.
const connectTimeout = 10 * time.Second

// ownConnection never reuses a connection. The server may just be closing it, and the client could not know
// whether the call had begun.
var ownConnection = &http.Transport{
	Proxy:               http.ProxyFromEnvironment,
	DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
	TLSHandshakeTimeout: connectTimeout,
	TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2: it shares one connection
	DisableKeepAlives:   true,
}

// ServeHTTP passes on the server's answer, or the reason for a missing one.
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
		if proxy.Transport == nil {
			proxy.Transport = ownConnection
		}
	}
	proxy.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

func (u *Upstream) fail(w http.ResponseWriter, r *http.Request, request *Request, connected bool, err error) {
	if !connected {
		Report(r.Context(), NotCalled)
		fail(w, http.StatusBadGateway, request, &Error{Code: Unavailable, Message: "The upstream server cannot be reached: " + err.Error()})
		return
	}
	if r.Context().Err() != nil || !hungUp(err) {
		Report(r.Context(), Unfinished)
	}
	message := "The upstream server did not answer, and the outcome is unknown: " + err.Error()
	fail(w, http.StatusBadGateway, request, &Error{Code: DependencyError, Message: message})
}

// hungUp reports whether the server has closed the connection, also if this side notices it while sending.
func hungUp(err error) bool {
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, closed) {
			return true
		}
	}
	return false
}

// readWhole returns an error if the answer is incomplete.
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
