// Package enrolment is the side of a host that wants a certificate: how it comes into a cluster with a token, and how it keeps its
// certificate good for as long as it runs. Who may come in is decided by the leader (package cluster), what is kept and
// verified is package identity's.
package enrolment
