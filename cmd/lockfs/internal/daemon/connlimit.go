package daemon

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// endpointConns is the maximum number of connections to an HTTP endpoint.
	endpointConns = 1024
	// endpointIdle is the idle time after which an endpoint closes a connection.
	endpointIdle = 2 * time.Minute
)

// connLimit is a listener with a limited number of connections. At the limit, a new connection replaces the
// one with the longest wait for the rest of a request, so idle or slow clients never exclude others.
// Connections with a complete request stay; if all have one, the new connection waits.
type connLimit struct {
	net.Listener
	most int

	mu      sync.Mutex
	freed   *sync.Cond // signals a closed connection, a new wait, or the end of the listener
	open    int
	waiting *list.List // of *limitedConn without a complete request, the oldest first
	closed  bool
}

func limitConns(listener net.Listener, most int) *connLimit {
	l := &connLimit{Listener: listener, most: most, waiting: list.New()}
	l.freed = sync.NewCond(&l.mu)
	return l
}

func (l *connLimit) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open >= l.most && !l.closed {
		if oldest := l.waiting.Front(); oldest != nil {
			l.release(oldest.Value.(*limitedConn))
			break
		}
		l.freed.Wait()
	}
	if l.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	limited := &limitedConn{Conn: conn, limit: l}
	limited.place = l.waiting.PushBack(limited)
	l.open++
	return limited, nil
}

func (l *connLimit) Close() error {
	l.mu.Lock()
	l.closed = true
	l.freed.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// release closes a connection and frees its place. The caller holds mu.
func (l *connLimit) release(c *limitedConn) {
	if c.gone {
		return
	}
	c.gone = true
	l.open--
	l.setWaiting(c, false)
	l.freed.Signal()
	_ = c.Conn.Close()
}

// setWaiting records whether a connection waits for a request. The caller holds mu.
func (l *connLimit) setWaiting(c *limitedConn, waits bool) {
	switch {
	case waits && c.place == nil && !c.gone:
		c.place = l.waiting.PushBack(c)
		l.freed.Signal()
	case !waits && c.place != nil:
		l.waiting.Remove(c.place)
		c.place = nil
	}
}

// server returns an HTTP server with the time limits of all endpoints. connContext may be nil.
func (l *connLimit) server(handler http.Handler, connContext func(context.Context, net.Conn) context.Context, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, _ := r.Context().Value(limitedConnKey{}).(*limitedConn); c != nil {
				r.Body = &trackedBody{r.Body, c.hasRequest}
				if r.ContentLength == 0 {
					c.hasRequest()
				}
			}
			handler.ServeHTTP(w, r)
		}),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if connContext != nil {
				ctx = connContext(ctx, conn)
			}
			return context.WithValue(ctx, limitedConnKey{}, limitedConnOf(conn))
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			if c := limitedConnOf(conn); c != nil && state == http.StateIdle {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.setWaiting(c, true)
			}
		},
		ReadHeaderTimeout: stopGrace, IdleTimeout: endpointIdle, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

type limitedConnKey struct{}

// limitedConn counts in a connLimit until it is closed.
type limitedConn struct {
	net.Conn
	limit *connLimit
	place *list.Element // in the list of waiting connections; nil during a request
	gone  bool
}

// limitedConnOf returns the limited connection below a connection, or nil.
func limitedConnOf(conn net.Conn) *limitedConn {
	if secure, isTLS := conn.(*tls.Conn); isTLS {
		conn = secure.NetConn()
	}
	c, _ := conn.(*limitedConn)
	return c
}

// hasRequest records the end of reading a request.
func (c *limitedConn) hasRequest() {
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	c.limit.setWaiting(c, false)
}

// NetConn returns the underlying connection, like that of a *tls.Conn.
func (c *limitedConn) NetConn() net.Conn { return c.Conn }

func (c *limitedConn) Close() error {
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	c.limit.release(c)
	return nil
}

// trackedBody calls ended at the end of a request body.
type trackedBody struct {
	io.ReadCloser
	ended func()
}

func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended()
	}
	return n, err
}
