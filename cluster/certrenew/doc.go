// Package certrenew gets and renews the certificate of a host: with a join token at first, and then while
// the host runs. The leader decides about admission (package cluster); package identity stores and
// verifies certificates.
package certrenew
