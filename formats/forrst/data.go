package forrst

import "time"

// Data is a response's data about its lock ("Data (Response)").
type Data struct {
	Key       string    `json:"key"` // as in the options, without prefix
	Acquired  bool      `json:"acquired"`
	Owner     string    `json:"owner,omitempty"`
	Scope     Scope     `json:"scope,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Granted returns the data for a request with the lock.
func (o *Options) Granted(lock *Lock) Data {
	return Data{Key: o.Key, Acquired: true, Owner: lock.Owner, Scope: o.Scope, ExpiresAt: lock.ExpiresAt}
}

// Refused returns the data for a request without the lock.
func (o *Options) Refused() Data { return Data{Key: o.Key} }
