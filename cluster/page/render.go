package page

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/http"
	"os/user"
	"strconv"
	"strings"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

func parseTemplates() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"when":    func(at moment) timed { return timed{at, 0} },
		"ago":     func(seconds float64) string { return span(time.Duration(seconds * float64(time.Second))) },
		"fine":    func(seconds float64) string { return fineSigned(seconds) },
		"event":   func(name string) string { return strings.ReplaceAll(name, "_", " ") },
		"path":    escapePath,
		"mid":     func(width, part int) int { return width / part },
		"add":     func(a, b int) int { return a + b },
		"version": func(v string) string { v, _, _ = strings.Cut(v, " "); return v },
	}).ParseFS(files, "templates/*.html"))
}

func fineSigned(seconds float64) string {
	if seconds < 0 {
		return "−" + fine(time.Duration(math.Abs(seconds)*float64(time.Second)))
	}
	return fine(time.Duration(seconds * float64(time.Second)))
}

// timed is a moment that is shown by how far it is from now.
type timed struct {
	At  moment
	Now moment
}

// Distance is of the time at which the page was made; the script goes on with it.
func (t timed) Distance() string {
	if t.Now == 0 {
		t.Now = moment(time.Now().UnixNano())
	}
	return t.At.Distance(t.Now)
}

// Block shows one of the blocks.
func (v *view) Block(key string) template.HTML {
	for _, p := range v.Blocks {
		if p.Key == key {
			return template.HTML(v.render(p.Template, p.Value)) //nolint:gosec // it comes from a template
		}
	}
	return ""
}

// Rows shows those of a list.
func (v *view) Rows(name string) template.HTML {
	var rows strings.Builder
	for _, l := range v.Lists {
		for _, p := range l.Rows {
			if l.Name == name {
				rows.WriteString(v.render(p.Template, shownRow{p.Key, p.Value}))
			}
		}
	}
	return template.HTML(rows.String()) //nolint:gosec // it comes from a template
}

// shownRow is what the template of a row has.
type shownRow struct {
	Key string
	Row any
}

func rowKey(number uint64) string { return strconv.FormatUint(number, 10) }

// piece makes the HTML of a piece.
func (s *Server) piece(name string, value any, _ moment) string {
	var out bytes.Buffer
	if err := s.templates.ExecuteTemplate(&out, name, value); err != nil {
		s.cfg.Logger.Error("a page cannot be made", "template", name, "error", err)
	}
	return out.String()
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
	_, _ = io.Copy(w, &out) // who asked is gone
}

// render answers a page that is not live.
func (s *Server) render(w http.ResponseWriter, r *http.Request, code int, name string, value any) {
	s.write(w, code, name, s.view(r, &view{Content: value, Kind: name}))
}

// failure is what the page of an error has.
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

// failWith answers an error of the cluster.
func (s *Server) failWith(w http.ResponseWriter, r *http.Request, err error) {
	refused := new(rpc.RefusedError)
	switch {
	case isGone(err):
		s.fail(w, r, http.StatusNotFound, "There is no such lock, and no event tells of one.", "lockfs locks")
	case errors.As(err, &refused) && refused.Code() == storepb.Code_NOT_PERMITTED:
		s.fail(w, r, http.StatusForbidden, "You may not: "+err.Error()+".", "")
	case errors.As(err, &refused):
		s.fail(w, r, http.StatusConflict, "It was refused: "+err.Error()+".", "")
	default:
		s.fail(w, r, http.StatusServiceUnavailable, "There is no answer: "+err.Error()+".", "lockfs doctor")
	}
}

// userName is that of a uid on this host.
func userName(uid uint32) string {
	if u, err := user.LookupId(fmt.Sprint(uid)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", uid)
}
