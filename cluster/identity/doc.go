// Package identity is how hosts of a cluster know each other: an authority of the cluster's own signs a certificate for each, a
// token lets a new one in, and TLS is set up so that nobody else is.
//
// It does what is to be done with keys and certificates, and keeps those of one host in a directory. Who is admitted is in the
// cluster's state, which this package is told of through a [Judge].
//
// # Certificates
//
// All keys are ECDSA P-256. A server's leaf is for the names server.lockfs and NAME.server.lockfs, that of a host which only mounts is
// for NAME.client.lockfs; it is valid for [Validity]. An authority's certificate has no end: an authority is replaced
// ([Authority.CrossSign]), and dropped from the state once nobody needs it.
//
// Clocks of hosts may be wrong, and that must neither let anybody in nor keep anybody out. So a chain is verified as of the leaf's own time, and
// the leaf's end is compared with the time of the cluster as the verifier knows it (Judge.Now). That a leaf is not valid
// yet is nobody's concern: the authority has signed it.
//
// # Letting in
//
// A server admits whose chain leads to one of its authorities, whose leaf has not expired, and whose name and key the state has as admitted. So
// who is revoked, or has enrolled again with another key, needs no list of certificates. A client admits whose chain leads to one
// of the authorities that it was told of, for server.lockfs, and not expired. Between servers that have each other as admitted, expiry does
// not count: a cluster that was off for months goes on, and its servers renew when they have a leader.
//
// Servers send along what leads from their leaf to older authorities, so whoever knows only one of those, or has a token from that time, can
// follow.
package identity
