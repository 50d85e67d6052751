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

// Upstream passes requests on to a server that has the functions, behind a [Runner].
//
// A server that hangs up instead of answering has ended the call: that is what many do with a function that
// throws, and what becomes of one that is killed. A call that has no complete answer for another reason, because
// its time was over or the network failed, may still be at work there: it is reported as Unfinished.
type Upstream struct {
	URL       *url.URL
	Transport http.RoundTripper // nil: http.DefaultTransport, and for each call with a lock a connection of its own
}

// connectTimeout is for a connection of its own.
const connectTimeout = 10 * time.Second

// ownConnection does not use a connection again, which its server may be closing just then: nobody would know
// whether the call had begun.
var ownConnection = &http.Transport{
	Proxy:               http.ProxyFromEnvironment,
	DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
	TLSHandshakeTimeout: connectTimeout,
	TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2, which has one connection for all
	DisableKeepAlives:   true,
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
	message := "The upstream server did not answer, and what it did is not known: " + err.Error()
	fail(w, http.StatusBadGateway, request, &Error{Code: DependencyError, Message: message})
}

// hungUp tells that the server has closed the connection. What is still being sent then finds it closed on this side.
func hungUp(err error) bool {
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, closed) {
			return true
		}
	}
	return false
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
