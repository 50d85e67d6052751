package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// leavePlan are the options of lockfs leave.
type leavePlan struct {
	force      bool
	removeData bool
}

func leaveCommand() *cobra.Command {
	var plan leavePlan
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Remove this host from its cluster for good",
		Long: `Remove this host from its cluster for good: unmount, leave the members if it is a
server, stop the daemon, revoke and remove its identity, and remove
` + settingsFile + `. Programs can create files in the mount point again. To come
back, the host needs a new token. A server's data stays in its data directory,
useless for this cluster, unless you give --remove-data.

A server gives up its vote before it stops. If the remaining servers have no
quorum without it, it stays unless you give --force. The last server of a cluster
cannot leave it.

The command refuses while programs use the mount, and names them. --force takes
the mount away from them. With --force the command also goes on without the
cluster, and prints the steps that remain for you on a server.`,
		Example: "  lockfs leave\n  lockfs leave --remove-data",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needRoot("lockfs leave"); err != nil {
				return err
			}
			h, err := thisHost()
			if err != nil {
				return err
			}
			r := &report{w: cmd.OutOrStdout()}
			if h == nil {
				r.title("this host is in no cluster (%s has no role)", settingsFile)
				return nil
			}
			r.title("%s leaves its cluster", h.describe())
			return plan.run(cmd.Context(), r, h)
		},
	}
	cmd.Flags().BoolVar(&plan.force, "force", false, "also while programs use the mount, or the cluster cannot be asked, or needs this server")
	cmd.Flags().BoolVar(&plan.removeData, "remove-data", false, "remove the data of a server too")
	return cmd
}

// run can be repeated after an interruption: it removes the settings last.
func (p *leavePlan) run(ctx context.Context, r *report, h *host) error {
	err := p.resign(ctx, r, h)
	var inUse *inUseError
	switch {
	case err == nil:
	case errors.As(err, &inUse):
		return err
	case !p.force:
		return fmt.Errorf("%w; --force continues anyway", err)
	default:
		r.did("trouble", "%s", err)
		r.did("to do", "on a server: %s", h.outstanding())
	}
	if err := h.down(ctx, r, p.force); err != nil {
		return err
	}
	if err := h.unprotect(r); err != nil {
		return err
	}
	return p.remove(r, h)
}

// outstanding returns the command for an administrator if the cluster did not answer.
func (h *host) outstanding() string {
	if h.role == identity.Server {
		return "lockfs member remove " + h.name
	}
	return "lockfs host revoke " + h.name
}

// resign removes this host from the cluster. A host without an identity has left already.
func (p *leavePlan) resign(ctx context.Context, r *report, h *host) error {
	credentials, err := identity.Load(h.identityDir())
	if errors.Is(err, identity.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	if h.role == identity.Client {
		if err := h.down(ctx, r, p.force); err != nil {
			return err
		}
		err := h.askToBeOut(ctx, credentials.Servers(), func(ctx context.Context, asked *cluster.Admin) error {
			return admin.RevokeHost(ctx, asked, "")
		})
		if err == nil {
			r.did("identity", "revoked")
		}
		return err
	}
	servers := credentials.Servers()
	return h.askServers(ctx, servers, func(ctx context.Context, asked *cluster.Admin) error {
		return p.resignAsServer(ctx, r, h, asked, servers)
	})
}

// askToBeOut sends a request to end this host's rights. The connection may end before the reply. The
// servers then refuse this host, which counts as success.
func (h *host) askToBeOut(ctx context.Context, servers []string, question func(context.Context, *cluster.Admin) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var turnedAway atomic.Bool
	whom := &cli.ClusterFlags{Servers: servers, Identity: h.identityDir()}
	err := asking(ctx, whom, func() { turnedAway.Store(true); cancel() }, question)
	if turnedAway.Load() {
		return nil
	}
	return err
}

// resignAsServer removes the server from the members, which also revokes it.
func (p *leavePlan) resignAsServer(ctx context.Context, r *report, h *host, asked *cluster.Admin, servers []string) error {
	nodes, err := asked.Status(ctx, false)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(nodes, func(n cluster.NodeStatus) bool { return n.Name == h.name })
	if len(others) == len(nodes) {
		return nil // removed before
	}
	others = slices.DeleteFunc(others, func(n cluster.NodeStatus) bool { return !n.Voter })
	if err := enoughWithout(others); err != nil && !p.force {
		return err
	}
	if err := p.unmount(r, h); err != nil {
		return err
	}
	err = h.askToBeOut(ctx, servers, func(ctx context.Context, asked *cluster.Admin) error { return asked.Remove(ctx, h.name, p.force) })
	var refused *rpc.RefusedError
	if err != nil && (!errors.As(err, &refused) || refused.Result.GetCode() != storepb.Code_NOT_FOUND) {
		return fmt.Errorf("remove %s from the members: %w", h.name, err)
	}
	r.did("member", "removed; %s", describeRest(len(others)))
	return nil
}

// unmount ends the session of the mount while the cluster still knows this host. With force, the end of the
// daemon does that.
func (p *leavePlan) unmount(r *report, h *host) error {
	if p.force {
		return nil
	}
	return h.unmount(r, false)
}

// enoughWithout returns an error if the other voters have no quorum without this one.
func enoughWithout(others []cluster.NodeStatus) error {
	answering := 0
	for _, other := range others {
		if other.Err == nil {
			answering++
		}
	}
	switch majority := len(others)/2 + 1; {
	case len(others) == 0:
		return errors.New("this is the only server of the cluster: stop it with `lockfs down`; to delete the cluster, " +
			"then remove its data directory")
	case answering < majority:
		return fmt.Errorf("this server is needed for a quorum: of the %d others only %d answer. "+
			"Start the others, or remove them with `lockfs member remove`", len(others), answering)
	}
	return nil
}

// describeRest returns how many failures the remaining servers tolerate.
func describeRest(servers int) string {
	bear := (servers - 1) / 2
	switch {
	case servers == 1:
		return "one server is left: it must not fail"
	case bear == 0:
		return fmt.Sprintf("%d servers are left: none of them may fail", servers)
	}
	return fmt.Sprintf("%d servers are left, of which %d may fail", servers, bear)
}

// remove removes the files of lockfs up.
func (p *leavePlan) remove(r *report, h *host) error {
	daemon, err := h.service()
	if err != nil {
		return err
	}
	if err := daemon.remove(); err != nil {
		return err
	}
	if err := identity.Remove(h.identityDir()); err != nil {
		return fmt.Errorf("remove the identity: %w", err)
	}
	r.did("identity", "removed from %s", h.identityDir())
	if err := h.forgetSession(); err != nil {
		return err
	}
	if h.role == identity.Server {
		if err := removeFile(filepath.Join(h.data, consensus.SealKeyFile)); err != nil {
			return err
		}
		if err := p.clearData(r, h); err != nil {
			return err
		}
	}
	if err := removeFile(settingsFile); err != nil {
		return err
	}
	r.did("settings", "removed %s", settingsFile)
	return nil
}

// forgetSession removes the session file of a mount that could not end its session: the next mount may be of
// another cluster.
func (h *host) forgetSession() error {
	file := cli.SessionFile(h.name, h.mount)
	if h.role == identity.Server {
		file = cli.ServerSessionFile(h.data)
	}
	var err error
	for _, left := range session.Files(file) {
		err = errors.Join(err, removeFile(left))
	}
	return err
}

// clearData empties the data directory, which may be a mount point.
func (p *leavePlan) clearData(r *report, h *host) error {
	if !p.removeData {
		r.is("data", "stays in %s: remove it with --remove-data or rm -r; `lockfs up` needs an empty directory", h.data)
		return nil
	}
	entries, err := os.ReadDir(h.data)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(h.data, entry.Name())); err != nil {
			return err
		}
	}
	r.did("data", "removed the content of %s", h.data)
	return nil
}
