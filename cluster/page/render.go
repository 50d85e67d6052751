package page

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

func rowKey(number uint64) string { return strconv.FormatUint(number, 10) }

func (s *Server) piece(name string, value any) string {
	var out bytes.Buffer
	if err := s.templates.ExecuteTemplate(&out, name, value); err != nil {
		s.cfg.Logger.Error("a page cannot be made", "template", name, "error", err)
	}
	return out.String()
}

func (s *Server) view(r *http.Request, v *view) *view {
	caller := rpc.CallerOf(r.Context())
	v.Now, v.Host = s.overview.now(), s.cfg.Host
	v.render = func(name string, value any) string { return s.piece(name, value) }
	if v.content == nil {
		v.content = new(content)
	}
	if caller.Role == rpc.RoleUser {
		v.User, _, _ = strings.Cut(s.users.name(caller.UID), " (")
		v.Admin, v.Code = s.cfg.Administers(caller), s.code(r)
		_, err := r.Cookie(cookieName)
		v.Logout = err == nil
	}
	return v
}

func (s *Server) write(w http.ResponseWriter, code int, name string, v *view) {
	var out bytes.Buffer
	if err := s.templates.ExecuteTemplate(&out, name+".html", v); err != nil {
		s.cfg.Logger.Error("a page cannot be made", "template", name, "error", err)
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.Copy(w, &out) // the client has gone
}

// render sends a page without live updates.
func (s *Server) render(w http.ResponseWriter, r *http.Request, code int, name string, value any) {
	s.write(w, code, name, s.view(r, &view{Content: value, Kind: name}))
}

type failure struct {
	Code    int
	Text    string
	Command string
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, code int, text, command string) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		writeJSON(w, code, apiError{Error: strings.TrimSuffix(strings.TrimSpace(text+" "+command), ":")})
		return
	}
	s.render(w, r, code, "fail", failure{code, text, command})
}

func (s *Server) failWith(w http.ResponseWriter, r *http.Request, err error) {
	refused := new(rpc.RefusedError)
	switch {
	case isGone(err):
		s.fail(w, r, http.StatusNotFound, "There is no such lock, and no event about one.", "lockfs locks")
	case errors.As(err, &refused) && refused.Code() == storepb.Code_NOT_PERMITTED:
		s.fail(w, r, http.StatusForbidden, "You have no permission: "+err.Error()+".", "")
	case errors.As(err, &refused):
		s.fail(w, r, http.StatusConflict, "The cluster refused this: "+err.Error()+".", "")
	default:
		s.fail(w, r, http.StatusServiceUnavailable, "The cluster does not answer: "+err.Error()+".", "lockfs doctor")
	}
}
