package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

// findRestored returns the server in the data directory if this host has no settings, or those of a server
// of another name, as after `lockfs restore`; else nil. It refuses a server without certificates, and one
// that has left its cluster.
func findRestored(data string, was *host) (*consensus.Identity, error) {
	if was != nil {
		data = cmp.Or(data, was.data)
	}
	data = cmp.Or(data, defaultData)
	if was != nil && was.role != identity.Server || consensus.IsBootstrapping(data) {
		return nil, nil
	}
	server, err := consensus.ReadIdentity(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case was != nil && was.name == server.Name:
		return nil, nil
	}
	if err := consensus.CheckUnused(data); err != nil {
		return nil, err
	}
	_, err = identity.Load(filepath.Join(data, consensus.CredentialsDir))
	if errors.Is(err, identity.ErrNone) {
		return nil, fmt.Errorf("%s has the data of server %s, without a certificate: the server has left its cluster, or its cluster has none. "+
			"To join or create a cluster, remove the data or give another --data; a server without certificates starts with `lockfs server --insecure`",
			cli.Text(data), server.Name)
	}
	return server, err
}

// adopt takes name and address from the directory of a restored server.
func (h *host) adopt(server *consensus.Identity) {
	h.name = server.Name
	if h.advertised() != server.Address {
		h.settings.set(addrVariable, server.Address)
		h.settings.set(advertiseVariable, "")
	}
}
