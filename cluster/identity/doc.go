// Package identity authenticates the hosts of a cluster. The cluster's own CA signs a certificate for each
// host, a token lets a new host join, and TLS accepts only such hosts.
//
// The package handles keys and certificates, and stores those of one host in a directory. The cluster's state
// has the admitted hosts; the package reads it through a [Verifier].
//
// # Certificates
//
// All keys are ECDSA P-256. A server's leaf has the names server.lockfs and NAME.server.lockfs. The leaf of a
// host which only mounts has NAME.client.lockfs. A leaf is valid for [Validity]. A CA's certificate has no
// end: a newer CA replaces it ([Authority.CrossSign]), and the state drops the old one once it is unused.
//
// Wrong clocks of hosts must neither admit nor exclude a host. So the verifier checks a chain as of the
// leaf's own time, and compares the leaf's end with its knowledge of cluster time (Verifier.Now). It ignores
// the begin of a leaf's validity: the CA has signed the leaf.
//
// # Verification
//
// A server accepts a host under three conditions: its chain leads to a trusted CA, its leaf has not expired,
// and the state has its name and key as admitted. So revocations, and enrolments with a new key, need no list
// of certificates. A client verifies servers by its roster (next section). Between admitted servers expiry
// does not count: after months without power a cluster continues, and its servers renew when they have a
// leader.
//
// A host unknown to the verifier needs a certificate of the verifier's newest CA, or of a later one. So a
// rotation invalidates certificates made with the key of an earlier CA.
//
// # Removed servers
//
// A removed server has a certificate for up to [Validity], and a host without the cluster's state cannot look
// up the server's status. So the leader sends mounts a [Roster] with keepalives: the keys of the members,
// revoked keys, and the CAs. The host stores it beside its certificate. It sends no calls to a server with a
// revoked key. It trusts a member of a roster received within the last minute.
//
// Every other server has to prove its membership ([Proof]). The leader, confirmed by a quorum, signs the
// host's nonce and the server's key with the key of the newest CA. Every cluster has this secret, and the
// host can verify it. All servers may have been replaced while the host was off, or the cluster restored
// elsewhere with its ca.key.
//
// The limits: the identity of a removed server is useless against hosts at any time. Its whole disk has the
// key of the CA at that time ([SealKey]). Until a rotation of the CA, an attacker can make another identity
// and prove it to connecting hosts. After the rotation this works only against a host which was off since
// before, and reaches no server of the cluster. The first server it reaches sends the newer CA, and proofs of
// the older CA do not count any more.
//
// A joining host has only its token. It requires the same proof, by the CA in the token or a later one. It
// also requires a code derived from the token's record in the state: a server removed before the token's
// creation has no such record ([SecretHash.Prove]). It sends no secret: it signs its request ([Secret.Sign]).
//
// If a host reaches no server with a proof, its error message suggests a new token. With the token it can
// join without any member of its roster.
//
// Servers send the certificates which lead from their leaf to older CAs. So hosts with only an older CA, or
// with a token from its time, can follow.
package identity
