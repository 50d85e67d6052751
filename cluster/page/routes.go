package page

import (
	"context"
	"io/fs"
	"net"
	"net/http"

	"lockfs/cluster/rpc"
)

// Handler serves who has logged in. [Server.SocketHandler] gives the addresses for that.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s.loggedIn(s.pages()))
	mux.Handle("GET /login/{token}", s.underItsName(http.HandlerFunc(s.login)))
	s.handleStatic(mux)
	return header(http.NewCrossOriginProtection().Handler(mux))
}

// SocketHandler serves who has connected to a unix socket, on a server that has [ConnContext]. It serves what Handler does; and
// POST /v1/login makes an address there that logs its caller in, once.
func (s *Server) SocketHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s.pages())
	mux.HandleFunc("POST /v1/login", s.invite)
	s.handleStatic(mux)
	known := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rpc.CallerOf(r.Context()).Role != rpc.RoleUser {
			http.Error(w, "nobody knows who you are", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
	return header(http.NewCrossOriginProtection().Handler(known))
}

// ConnContext notes who has connected to a unix socket, for [Server.SocketHandler]. It is for http.Server.
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

// pages are all that somebody is needed for.
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

// handleStatic serves what is the same for everybody.
func (s *Server) handleStatic(mux *http.ServeMux) {
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // it is embedded
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		http.ServeFileFS(w, r, files, "openapi.json")
	})
}

// header keeps a browser from loading and running what is not of this server, and from keeping what it has shown.
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
