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

// errandTime limits a command that changes the cluster.
const errandTime = 20 * time.Second

// run starts the program for a host's server. The caller calls ended to wait for its end.
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

// errand runs a command that may fail.
func (s *Site) errand(args ...string) {
	ended := s.run(s.leading(), args...)
	s.errands.Go(func() { _, _ = ended() })
}

// demoted demotes a follower. [Site.Settle] promotes it again.
func demoted(s *Site, g *target, _ Strike) func() {
	s.errand("member", "demote", g.name)
	return func() { s.errand("member", "promote", g.name) }
}

// replaced replaces a follower by the server without a vote. The follower then joins as a new server, without
// a vote.
func replaced(s *Site, g *target, _ Strike) func() {
	if s.replacing != nil || g == s.servers[0] || g == s.spare() || s.spare() == nil {
		return nil
	}
	s.replace(g, s.spare())
	return func() {}
}

// replace begins to replace a server. A nil fresh removes the server without a replacement.
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

// tokenFor returns the command that makes a token for a replaced server.
func tokenFor(g *target) []string {
	return []string{"token", "create", "--role", "server", "--host", g.name}
}

// A replacement lasts until the old server is back without a vote.
type replacement struct {
	old, fresh *target // fresh is nil without a replacement
	ended      chan error
	token      string // for the old server's return
}

// change returns the command that ends the membership of the old server.
func (r *replacement) change() []string {
	if r.fresh == nil {
		return []string{"member", "remove", r.old.name}
	}
	return []string{"member", "replace", r.old.name, r.fresh.name}
}

// rotated rotates the CA. All daemons renew their certificates.
func rotated(s *Site, _ *target, _ Strike) func() {
	if !s.Cluster.Secure {
		return nil
	}
	s.errand("ca", "rotate")
	return func() {}
}

// spare returns the server that should not vote.
func (s *Site) spare() *target {
	for _, g := range s.servers {
		if !g.voter {
			return g
		}
	}
	return nil
}

// settleMembers completes a replacement and lets the intended servers vote.
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

// goOn lets a replaced server return, if its process can end: it must not be frozen, nor its disk.
func (s *Site) goOn(t testing.TB, r *replacement) {
	t.Helper()
	if r.old.held&(process|disk|network) != 0 {
		return
	}
	select {
	case err := <-r.ended:
		if err != nil {
			r.ended <- err // tried again when nothing blocks it
			return
		}
		s.comeBack(t, r)
	default:
	}
}

// comeBack deletes the data of a removed server, and lets it join as a new one. It may end in any way before,
// because callers settle the calls of its mount.
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
		s.Unsettled = append(s.Unsettled, g.name) // its mount was cut off, or killed for good, and its state is lost now
	}
	g.wipe(t)
	g.node.Flags = []string{"--nonvoter", "--token", strings.TrimSpace(r.token)}
	s.install(g.name, s.Next) // all others may have it, and the cluster's version may have been raised
	if r.fresh != nil {
		r.fresh.voter, g.voter = true, false
	}
	s.replacing, s.Replaced = nil, append(s.Replaced, g.name)
	g.launch(t)
}

// command repeats the program on one server after the other until it succeeds.
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

// votesIn reports whether a list of members has a name, and whether it votes.
func votesIn(list, name string) (votes, is bool) {
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == name {
			return !strings.Contains(line, "non-voter"), true
		}
	}
	return false, false
}
