// Package identity is how hosts of a cluster know each other: an authority of the cluster's own signs a
// certificate for each, a token lets a new one in, and TLS is set up so that nobody else is.
//
// It does what is to be done with keys and certificates, and keeps those of one host in a directory. Who
// is admitted is in the cluster's state, which this package is told of through a [Verifier].
//
// # Certificates
//
// All keys are ECDSA P-256. A server's leaf is for the names server.lockfs and NAME.server.lockfs, that
// of a host which only mounts is for NAME.client.lockfs; it is valid for [Validity]. An authority's
// certificate has no end: an authority is replaced ([Authority.CrossSign]), and dropped from the state
// once nobody needs it.
//
// Clocks of hosts may be wrong, and that must neither let anybody in nor keep anybody out. So a chain is
// verified as of the leaf's own time, and the leaf's end is compared with the time of the cluster as the
// verifier knows it (Verifier.Now). That a leaf is not valid yet is nobody's concern: the authority has
// signed it.
//
// # Letting in
//
// A server lets a host in whose chain leads to one of its authorities, whose leaf has not expired, and
// whose name and key the state has as admitted. So a revoked host, or one that has enrolled again with
// another key, needs no list of certificates. A client judges servers by its roster (next section).
// Between servers that have each other as admitted, expiry does not count: a cluster that was off for
// months goes on, and its servers renew when they have a leader.
//
// A host that is not known yet needs a certificate of the newest authority that the other side knows, or
// of a later one. So a rotation shuts out certificates made with an earlier authority's key.
//
// # Removed servers
//
// A server that was removed has a certificate for up to [Validity], and a host without the cluster's
// state cannot ask for its standing. So the leader tells mounts a [Roster] with keepalives: the keys of
// the members, revoked keys, and the authorities. The host keeps it beside its certificate. It asks
// nothing of a server with a revoked key. It believes a member of a roster that was heard within the last
// minute. Every other server has to prove that it is one ([Proof]): the leader, which a majority
// confirms, signs a nonce of the host and the key of that server with the key of the newest authority.
// The key of the authority is the only secret that every cluster has which the host can know: all servers
// may have been replaced while the host was off, or the cluster may have been restored elsewhere with its
// ca.key.
//
// The limits: the identity of a removed server is worth nothing to hosts, at any time. Its whole disk has
// the key of the authority that signed then ([SealKey]). Until that is rotated, an attacker can make
// another identity and prove it to hosts that connect to it. After the rotation that works only with a
// host that was off since before and reaches no server of the cluster: the first one that it reaches
// tells it of the newer authority. Then no proof of the older one counts.
//
// A host that joins has nothing but its token. It wants the same proof, by the authority named in the
// token or a later one, and a code that takes the token's record in the state: a server that was removed
// before the token was made has none ([SecretHash.Prove]). It sends no secret: it signs its request
// ([Secret.Sign]).
//
// A host that reaches no server which can prove anything is told so, and that a new token gets it in. It
// needs no member of its roster for that.
//
// Servers send along what leads from their leaf to older authorities, so whoever knows only one of those,
// or has a token from that time, can follow.
package identity
