package forrst

import "time"

// Data is what a response says of its lock ("Data (Response)").
type Data struct {
	Key       string    `json:"key"` // as in the options, without prefix
	Acquired  bool      `json:"acquired"`
	Owner     string    `json:"owner,omitempty"`
	Scope     Scope     `json:"scope,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Granted is the data of a request that has the lock.
func (o *Options) Granted(lock *Lock) Data {
	return Data{Key: o.Key, Acquired: true, Owner: lock.Owner, Scope: o.Scope, ExpiresAt: lock.ExpiresAt}
}

// Refused is the data of a request that does not get the lock.
func (o *Options) Refused() Data { return Data{Key: o.Key} }
