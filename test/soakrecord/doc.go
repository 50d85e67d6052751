// Package soakrecord has a cluster under all faults there are, several at a time, for as long as it is asked:
// see test/soak. Its tests have the build tag soak.
package soakrecord
