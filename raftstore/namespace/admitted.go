package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Cluster returns the id of the cluster; empty: none yet.
func (ns *Namespace) Cluster() string { return ns.trust.Cluster() }

// EarlierClusters returns the ids of the clusters from which this one was recovered or restored.
func (ns *Namespace) EarlierClusters() []string { return ns.trust.Earlier() }

// GoesOnFor reports whether the cluster was recovered or restored, directly or indirectly, from the cluster
// with this id.
func (ns *Namespace) GoesOnFor(cluster string) bool { return ns.trust.GoesOnFor(cluster) }

// Authorities returns the trusted authorities of host certificates, the signing one first.
func (ns *Namespace) Authorities() []*storepb.Authority { return ns.trust.Authorities() }

// SigningAuthority returns the signing authority with its sealed key, which only the leader may use; nil:
// none.
func (ns *Namespace) SigningAuthority() *storepb.AuthorityRecord { return ns.trust.Signing() }

// UnneededAuthorities returns the fingerprints of the authorities DropAuthority would drop at a time. With
// more than one authority it visits every host.
func (ns *Namespace) UnneededAuthorities(now int64) [][]byte { return ns.trust.Obsolete(now) }

// Tokens returns the unexpired join tokens in the order of their ids.
func (ns *Namespace) Tokens() []*storepb.JoinToken { return ns.trust.Tokens() }

// Admitted returns nil for an admitted, unrevoked host with this name, role and key (SHA-256 of its
// SubjectPublicKeyInfo). Otherwise it returns an error of package trust. It is one look-up, whatever the
// number of hosts.
func (ns *Namespace) Admitted(name string, role storepb.Role, keyHash []byte) error {
	return ns.trust.Admitted(name, role, keyHash)
}

// MayAdmit returns the reason to refuse a host now; nil: none, as far as the request shows without a
// certificate.
func (ns *Namespace) MayAdmit(op *storepb.AdmitHost) *storepb.Result { return ns.trust.MayAdmit(op) }

// KnowsSecret reports whether a join token with this secret exists. The token may be used up.
func (ns *Namespace) KnowsSecret(tokenID, secretHash []byte) bool {
	return ns.trust.KnowsSecret(tokenID, secretHash)
}

// TokenSecretHash returns the stored hash of a join token's secret; nil: there is no such token.
func (ns *Namespace) TokenSecretHash(tokenID []byte) []byte { return ns.trust.SecretHash(tokenID) }

// Admission returns the record of a host, also of a revoked one; nil: the host is unknown.
func (ns *Namespace) Admission(name string) *storepb.Admission { return ns.trust.Host(name) }

// EachAdmission visits the admitted and the revoked hosts in the order of their names, until visit returns
// false.
func (ns *Namespace) EachAdmission(visit func(*storepb.Admission) bool) {
	ns.trust.HostsAfter("", visit)
}

// LastRevocation returns the index of the last command that ended an admission; 0: none. Such a command
// revoked a host, admitted it with another key or role, or dropped an authority. Servers check their open
// connections again after each change of the index:
//
//	fsm.WaitFor(ctx, func(ns *Namespace) bool { return ns.LastRevocation() != seen })
func (ns *Namespace) LastRevocation() ids.Index { return ns.trust.LastRevocation() }

// admissionPage is the largest number of hosts in one answer to ListAdmissions.
const admissionPage = 1000

func (r queryEngine) getAdmission(name string) *storepb.Result {
	host := r.trust.Host(name)
	if host == nil {
		return fail(storepb.Code_NOT_FOUND)
	}
	return &storepb.Result{Admissions: []*storepb.Admission{host}}
}

func (r queryEngine) listAdmissions(q *storepb.ListAdmissions) *storepb.Result {
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
