package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"syscall"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// question asks for confirmation of an irreversible action.
type question struct {
	Title   string
	Text    []string
	Action  string // target of the form
	Token   uint64 // of the displayed lock; 0: the question is about a host
	Button  string
	Back    string
	Command string // the equivalent command
}

// mayAct reports whether the caller is an administrator, and else sends a refusal. The cluster checks the
// permission again.
func (s *Server) mayAct(w http.ResponseWriter, r *http.Request) bool {
	if s.cfg.Administers(rpc.CallerOf(r.Context())) {
		return true
	}
	s.fail(w, r, http.StatusForbidden, "Only root on a server can release any lock and forget hosts.", "lockfs rm --force PATH")
	return false
}

// seen returns the lock in a request with its displayed token.
func (s *Server) seen(w http.ResponseWriter, r *http.Request) *storepb.Lock {
	path := r.PathValue("path")
	token, err := strconv.ParseUint(r.FormValue("token"), 10, 64)
	if err != nil || token == 0 {
		s.fail(w, r, http.StatusBadRequest, "The token of the lock is missing.", "")
		return nil
	}
	all, err := s.listings.get(r.Context(), s.overview.now())
	if err != nil {
		s.failWith(w, r, err)
		return nil
	}
	lock := all.full[path]
	if lock == nil || lock.GetToken() != token {
		s.fail(w, r, http.StatusConflict, fmt.Sprintf("The lock with token %d is gone. A newer lock of that name was not touched.", token), "lockfs why "+word(path))
		return nil
	}
	return lock
}

func (s *Server) askRelease(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w, r) {
		return
	}
	lock := s.seen(w, r)
	if lock == nil {
		return
	}
	d := describe(lock)
	text := []string{fmt.Sprintf("%s is %s, with token %d.", d.Path, d.State, d.Token)}
	if who := d.Who(); who != "" || d.Host != "" {
		text = append(text, "Its holder is "+cmp.Or(who, "an unknown process")+" on "+cmp.Or(d.Host, "an unknown host")+".")
	}
	if d.State != "stale" {
		text = append(text, "The holder may be alive. Releasing the lock does not stop it: two programs may then act as the holder.")
	}
	s.render(w, r, http.StatusOK, "confirm", question{
		Title: "Release this lock?", Text: text, Action: "/release/" + escapePath(d.Path), Token: d.Token, Button: "Release it", Back: d.Link(),
		Command: "lockfs rm --force " + word(s.cfg.Mount+"/"+d.Path),
	})
}

// release breaks a lock if its token is the displayed one. The state machine compares the tokens.
func (s *Server) release(w http.ResponseWriter, r *http.Request) {
	if !s.isOurs(w, r) || !s.mayAct(w, r) {
		return
	}
	lock := s.seen(w, r)
	if lock == nil {
		return
	}
	err := s.listings.ask.change(r.Context(), &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{
		Parent: lock.GetParent(), Name: lock.GetName(), Force: true, IfToken: lock.GetToken(),
		Directory: lock.GetAttr().GetMode()&syscall.S_IFMT == syscall.S_IFDIR,
	}}})
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	http.Redirect(w, r, Lock{Path: string(lock.GetPath())}.Link()+"?done=released", http.StatusSeeOther)
}

// forgettable returns a host which may be declared gone.
func (s *Server) forgettable(w http.ResponseWriter, r *http.Request) *Host {
	if !s.mayAct(w, r) {
		return nil
	}
	name := r.PathValue("host")
	hosts := s.overview.get(r.Context()).Hosts
	i := slices.IndexFunc(hosts, func(h Host) bool { return h.Name == name })
	switch {
	case i < 0:
		s.fail(w, r, http.StatusNotFound, "There is no such host.", "lockfs host list")
	case hosts[i].State == hostReachable:
		s.fail(w, r, http.StatusConflict, name+" has a mount, so it is not gone.", "lockfs host list")
	default:
		return &hosts[i]
	}
	return nil
}

func (s *Server) askForget(w http.ResponseWriter, r *http.Request) {
	h := s.forgettable(w, r)
	if h == nil {
		return
	}
	s.render(w, r, http.StatusOK, "confirm", question{
		Title: "Forget " + h.Name + "?", Action: "/forget/" + url.PathEscape(h.Name), Button: "It is gone for good", Back: "/hosts",
		Command: "lockfs host forget " + word(h.Name),
		Text: []string{
			"Every lock of a process on " + h.Name + " becomes stale at once. lockfs removes those with a format or rule that removes stale locks.",
			"Do this only if the host is switched off or will not come back. A process still running there acts as if it held its lock.",
		},
	})
}

func (s *Server) forget(w http.ResponseWriter, r *http.Request) {
	if !s.isOurs(w, r) {
		return
	}
	h := s.forgettable(w, r)
	if h == nil {
		return
	}
	if err := s.listings.ask.change(r.Context(), &storepb.Op{Op: &storepb.Op_ForgetHost{ForgetHost: &storepb.ForgetHost{Name: h.Name}}}); err != nil {
		s.failWith(w, r, err)
		return
	}
	http.Redirect(w, r, "/hosts", http.StatusSeeOther)
}
