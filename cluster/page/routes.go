package page

import (
	"context"
	"io/fs"
	"net"
	"net/http"

	"lockfs/cluster/rpc"
)

// Handler serves logged-in users. [Server.SocketHandler] creates the login addresses.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s.loggedIn(s.pages()))
	mux.Handle("GET /login/{token}", s.underItsName(http.HandlerFunc(s.login)))
	s.handleStatic(mux)
	return header(http.NewCrossOriginProtection().Handler(mux))
}

// SocketHandler serves users connected to a unix socket, in a server with [ConnContext]. It serves the same
// as Handler. In addition, POST /v1/login returns a one-time login address.
func (s *Server) SocketHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s.pages())
	mux.HandleFunc("POST /v1/login", s.invite)
	s.handleStatic(mux)
	known := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rpc.CallerOf(r.Context()).Role != rpc.RoleUser {
			http.Error(w, "the user of this connection is unknown", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
	return header(http.NewCrossOriginProtection().Handler(known))
}

// ConnContext adds the user of a unix connection to the context, for [Server.SocketHandler]. Use it in
// http.Server.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if over, is := conn.(interface{ NetConn() net.Conn }); is {
		conn = over.NetConn()
	}
	socket, is := conn.(*net.UnixConn)
	if !is {
		return ctx
	}
	caller, err := rpc.UserAt(socket)
	if err != nil {
		return ctx
	}
	return rpc.WithCaller(ctx, caller)
}

// pages serves everything which needs a user.
func (s *Server) pages() http.Handler {
	mux := http.NewServeMux()
	for _, kind := range kinds {
		mux.HandleFunc("GET "+kind.Path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, kind) })
		mux.HandleFunc("GET /live"+kind.Path, func(w http.ResponseWriter, r *http.Request) { s.stream(w, r, kind) })
	}
	mux.HandleFunc("GET /release/{path...}", s.askRelease)
	mux.HandleFunc("POST /release/{path...}", s.release)
	mux.HandleFunc("GET /forget/{host}", s.askForget)
	mux.HandleFunc("POST /forget/{host}", s.forget)
	mux.HandleFunc("POST /logout", s.logout)
	mux.HandleFunc("GET /v1/locks", s.apiLocks)
	mux.HandleFunc("GET /v1/locks/{path...}", s.apiLock)
	mux.HandleFunc("GET /v1/events", s.apiEvents)
	mux.HandleFunc("GET /v1/hosts", s.apiHosts)
	mux.HandleFunc("GET /v1/members", s.apiMembers)
	return mux
}

// handleStatic serves files equal for all users.
func (s *Server) handleStatic(mux *http.ServeMux) {
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // the files are embedded
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		http.ServeFileFS(w, r, files, "openapi.json")
	})
}

// header prevents browsers from loading or running foreign contents, and from caching.
func header(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
