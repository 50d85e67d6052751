package page

import (
	"context"
	"slices"
	"strings"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// hosts returns the hosts of the overview. Administrators also get certificates, and hosts with a certificate
// which have never mounted.
func (s *Server) hosts(ctx context.Context) ([]Host, error) {
	o := s.overview.get(ctx)
	if !o.Banner.Health.Confirmed {
		return nil, errNoAnswer
	}
	hosts := slices.Clone(o.Hosts)
	if !s.cfg.Administers(rpc.CallerOf(ctx)) {
		return hosts, nil
	}
	for after := ""; ; {
		result, err := s.listings.ask.query(ctx, &storepb.Query{Query: &storepb.Query_ListAdmissions{
			ListAdmissions: &storepb.ListAdmissions{After: after},
		}})
		if err != nil {
			return nil, err
		}
		admissions := result.GetAdmissions()
		if len(admissions) == 0 {
			sortHosts(hosts)
			return hosts, nil
		}
		for _, a := range admissions {
			i := slices.IndexFunc(hosts, func(h Host) bool { return h.Name == a.GetName() })
			if i < 0 {
				hosts = append(hosts, Host{Name: a.GetName(), State: hostNone})
				i = len(hosts) - 1
			}
			hosts[i].Certificate = &Certificate{
				Role: strings.ToLower(a.GetRole().String()), NotAfter: moment(a.GetNotAfter()), Admitted: moment(a.GetAdmitted()),
				Revoked: moment(a.GetRevoked()), SquashRoot: a.GetSquashRoot(),
			}
		}
		after = admissions[len(admissions)-1].GetName()
	}
}
