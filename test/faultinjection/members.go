package faultinjection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockfs/test/hosts"
)

// errandTime is how long a command may take that asks the cluster to change.
const errandTime = 20 * time.Second

// run begins to run the program on a host's behalf, asking its server. What it answers waits for the end.
func (s *Site) run(g *target, args ...string) (ended func() (string, error)) {
	type outcome struct {
		said string
		err  error
	}
	done := make(chan outcome, 1)
	command := append(append(args, "--timeout", errandTime.String()), g.node.Asked()...)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), errandTime)
		defer cancel()
		said, err := g.host.RunContext(ctx, s.Cluster.Program, command...)
		done <- outcome{said, err}
	}()
	return func() (string, error) {
		o := <-done
		return o.said, o.err
	}
}

// errand has the program ask for something that may as well not be done.
func (s *Site) errand(args ...string) {
	ended := s.run(s.leading(), args...)
	s.errands.Go(func() { _, _ = ended() })
}

// demoted takes a follower's vote. [Site.Settle] gives it back.
func demoted(s *Site, g *target, _ Strike) func() {
	s.errand("member", "demote", g.name)
	return func() { s.errand("member", "promote", g.name) }
}

// replaced has the server without a vote stand in for a follower, which comes in again as somebody else, without a vote.
func replaced(s *Site, g *target, _ Strike) func() {
	if s.replacing != nil || g == s.servers[0] || g == s.spare() || s.spare() == nil {
		return nil
	}
	s.replace(g, s.spare())
	return func() {}
}

// replace begins to replace a server with a fresh one. A nil fresh removes the server and leaves its place empty.
func (s *Site) replace(old, fresh *target) {
	r := &replacement{old: old, fresh: fresh, ended: make(chan error, 1)}
	s.replacing = r
	change, create := s.run(s.leading(), r.change()...), s.run(s.leading(), tokenFor(old)...)
	s.errands.Go(func() {
		_, err := change()
		if err == nil {
			r.token, err = create()
		}
		r.ended <- err
	})
}

// tokenFor is the command that lets a server in that was replaced.
func tokenFor(g *target) []string {
	return []string{"token", "create", "--role", "server", "--host", g.name}
}

// A replacement is under way until the old one is back without a vote.
type replacement struct {
	old, fresh *target // fresh is nil if no server takes the place of the old one
	ended      chan error
	token      string // with which the old one comes back
}

// change is the command that ends the membership of the old server.
func (r *replacement) change() []string {
	if r.fresh == nil {
		return []string{"member", "remove", r.old.name}
	}
	return []string{"member", "replace", r.old.name, r.fresh.name}
}

// rotated has a new authority sign for the cluster. All daemons renew their certificates.
func rotated(s *Site, _ *target, _ Strike) func() {
	if !s.Cluster.Secure {
		return nil
	}
	s.errand("ca", "rotate")
	return func() {}
}

// spare is the server that is meant to have no vote.
func (s *Site) spare() *target {
	for _, g := range s.servers {
		if !g.voter {
			return g
		}
	}
	return nil
}

// settleMembers brings a replacement to its end, and has those vote who are meant to.
func (s *Site) settleMembers(t testing.TB) {
	t.Helper()
	if r := s.replacing; r != nil {
		if err := <-r.ended; err != nil {
			t.Logf("%s was not replaced before: %v", r.old.name, err)
		}
		s.command(t, r.change()...)
		r.token = s.command(t, tokenFor(r.old)...)
		s.comeBack(t, r)
		r.old.node.AwaitReady(t)
	}
	hosts.Eventually(t, "those vote who are meant to", func() (string, bool) {
		said, err := s.run(s.leading(), "member", "list")()
		if err != nil {
			return err.Error(), false
		}
		all := true
		for _, g := range s.servers {
			votes, is := votesIn(said, g.name)
			if !is {
				return said, false
			}
			if g.voter && !votes {
				all = false
				_, err := s.run(s.leading(), "member", "promote", g.name)()
				said += fmt.Sprint(err)
			}
		}
		return said, all
	})
}

// goOn has a server come back that was replaced by now, and that can end: nobody thaws it or its disk meanwhile.
func (s *Site) goOn(t testing.TB, r *replacement) {
	t.Helper()
	if r.old.held&(process|disk|network) != 0 {
		return
	}
	select {
	case err := <-r.ended:
		if err != nil {
			r.ended <- err // it is tried again when nothing stands in its way
			return
		}
		s.comeBack(t, r)
	default:
	}
}

// comeBack has a server that is no member any more lose its data, and come in again as somebody else. It ends as it likes before, for
// what was asked of its mount is to be settled by who asked.
func (s *Site) comeBack(t testing.TB, r *replacement) {
	t.Helper()
	g := r.old
	g.away = true
	daemon := g.daemon()
	daemon.Signal(syscall.SIGTERM)
	select {
	case <-daemon.Ended():
	case <-time.After(errandTime):
		g.kill()
	}
	if daemon.Wait() != nil || !g.ready() || strings.Contains(daemon.Log(), "closed before the outcome of a call was settled") {
		s.Unsettled = append(s.Unsettled, g.name) // its mount was cut off, or killed and never came back, and what it knew goes now
	}
	g.wipe(t)
	g.node.Flags = []string{"--nonvoter", "--token", strings.TrimSpace(r.token)}
	s.install(g.name, s.Next) // all others may have it, and the cluster be of that version since
	if r.fresh != nil {
		r.fresh.voter, g.voter = true, false
	}
	s.replacing, s.Replaced = nil, append(s.Replaced, g.name)
	g.launch(t)
}

// command runs the program until it is done, on one server after the other.
func (s *Site) command(t testing.TB, args ...string) (said string) {
	t.Helper()
	next := 0
	hosts.Eventually(t, strings.Join(args, " "), func() (string, bool) {
		able := slices.DeleteFunc(slices.Clone(s.servers), func(g *target) bool {
			return g.away || g.ended() || g.held&process != 0 || s.isReplaced(g)
		})
		if len(able) == 0 {
			return "no server that could be asked", false
		}
		next++
		var err error
		said, err = s.run(able[next%len(able)], args...)()
		done := err == nil || strings.Contains(fmt.Sprint(err), "no member")
		return fmt.Sprint(err), done
	})
	return said
}

// votesIn tells whether a list of members has one of a name, and whether that votes.
func votesIn(list, name string) (votes, is bool) {
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == name {
			return !strings.Contains(line, "non-voter"), true
		}
	}
	return false, false
}
