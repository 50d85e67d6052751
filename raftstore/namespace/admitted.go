package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Cluster is the id of the cluster; empty: it has none yet.
func (ns *Namespace) Cluster() string { return ns.trust.Cluster() }

// EarlierClusters are the ids of those from whose state this cluster was recovered or restored.
func (ns *Namespace) EarlierClusters() []string { return ns.trust.Earlier() }

// GoesOnFor tells whether the cluster was recovered or restored from the one with this id, at first or second hand.
func (ns *Namespace) GoesOnFor(cluster string) bool { return ns.trust.GoesOnFor(cluster) }

// Authorities are those that certificates of hosts may be of, the one that signs first.
func (ns *Namespace) Authorities() []*storepb.Authority { return ns.trust.Authorities() }

// SigningAuthority is the authority that signs, with its sealed key, which is for nobody but the leader; nil: there is none.
func (ns *Namespace) SigningAuthority() *storepb.AuthorityRecord { return ns.trust.Signing() }

// UnneededAuthorities are the fingerprints of the authorities that DropAuthority would drop at a time. While there is more than one
// authority it looks at every host.
func (ns *Namespace) UnneededAuthorities(now int64) [][]byte { return ns.trust.Unneeded(now) }

// Tokens are the join tokens whose time is not over, in the order of their ids.
func (ns *Namespace) Tokens() []*storepb.JoinToken { return ns.trust.Tokens() }

// Admitted returns nil for a host that was let in under a name, in a role and with a key (SHA-256 of its SubjectPublicKeyInfo), and not
// revoked since; else one of the errors of package trust. It takes the time of a look-up, however many hosts there are.
func (ns *Namespace) Admitted(name string, role storepb.Role, keyHash []byte) error {
	return ns.trust.Admitted(name, role, keyHash)
}

// MayAdmit answers why a host would not be let in now; nil: it would, as far as can be told without its certificate.
func (ns *Namespace) MayAdmit(op *storepb.AdmitHost) *storepb.Result { return ns.trust.MayAdmit(op) }

// KnowsSecret tells whether there is a join token with this secret, which may be used up.
func (ns *Namespace) KnowsSecret(tokenID, secretHash []byte) bool {
	return ns.trust.KnowsSecret(tokenID, secretHash)
}

// TokenSecretHash returns the part of a join token's secret that the state has; nil: there is no such token.
func (ns *Namespace) TokenSecretHash(tokenID []byte) []byte { return ns.trust.SecretHash(tokenID) }

// Admission answers what is known of a host, also if it was revoked; nil: nothing.
func (ns *Namespace) Admission(name string) *storepb.Admission { return ns.trust.Host(name) }

// EachAdmission visits the hosts that were let in, those revoked since included, in the order of their names, until visit answers false.
func (ns *Namespace) EachAdmission(visit func(*storepb.Admission) bool) {
	ns.trust.HostsAfter("", visit)
}

// ShutOut is the index of the last command that shut somebody out who had been let in (a host was revoked, came back with another key or as
// something else, or an authority was dropped); 0: there was none. Who keeps connections looks at them again when it has changed:
//
//	fsm.WaitFor(ctx, func(ns *Namespace) bool { return ns.ShutOut() != seen })
func (ns *Namespace) ShutOut() ids.Index { return ns.trust.ShutOut() }

// admissionPage is the largest number of hosts that one ListAdmissions answers.
const admissionPage = 1000

func (r reader) getAdmission(name string) *storepb.Result {
	host := r.trust.Host(name)
	if host == nil {
		return fail(storepb.Code_NOT_FOUND)
	}
	return &storepb.Result{Admissions: []*storepb.Admission{host}}
}

func (r reader) listAdmissions(q *storepb.ListAdmissions) *storepb.Result {
	limit := int(q.GetLimit())
	if limit <= 0 || limit > admissionPage {
		limit = admissionPage
	}
	var hosts []*storepb.Admission
	r.trust.HostsAfter(q.GetAfter(), func(host *storepb.Admission) bool {
		hosts = append(hosts, &storepb.Admission{
			Name: host.GetName(), Role: host.GetRole(), KeyHash: host.GetKeyHash(), Authority: host.GetAuthority(), NotAfter: host.GetNotAfter(),
			SquashRoot: host.GetSquashRoot(), TokenId: host.GetTokenId(), Admitted: host.GetAdmitted(), Revoked: host.GetRevoked(),
		})
		return len(hosts) < limit
	})
	return &storepb.Result{Admissions: hosts}
}
