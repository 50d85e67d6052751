package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
)

// upPlan are the options of lockfs up.
type upPlan struct {
	bootstrap bool
	token     *identity.Token // nil: none given
	nonvoter  bool
	name      string
	addr      string
	advertise string
	mount     string
	data      string
	wait      time.Duration
	json      bool
	restored  *consensus.Identity // server that the host becomes by its data directory; nil: none
}

// outcome is the output of lockfs up --json.
type outcome struct {
	Host    string         `json:"host"`
	Role    string         `json:"role"` // server, client
	Mount   string         `json:"mount"`
	Data    string         `json:"data,omitempty"`          // of a server
	Address string         `json:"address,omitempty"`       // at which others reach a server
	Changed bool           `json:"changed"`                 // a step changed something
	Version string         `json:"version"`                 // of this program
	From    string         `json:"upgraded_from,omitempty"` // version of the program that ran before, after an upgrade
	Tokens  []*admin.Token `json:"tokens,omitempty"`        // of a new cluster
}

func upCommand() *cobra.Command {
	plan := new(upPlan)
	cmd := &cobra.Command{
		Use:   "up [--bootstrap | TOKEN]",
		Short: "Make this host a member of a cluster and start lockfs",
		Long: `Make this host a member of a cluster and start lockfs. --bootstrap creates a new
cluster with this host as its first server, and prints two tokens: for further
servers and for mounts. With a TOKEN this host joins as a server, or only mounts.

The command enrols the host, writes the settings to
` + settingsFile + `, starts the systemd unit (without systemd, a daemon
in the background), mounts the directory, and waits until it works. It also
protects the mount point: while lockfs is not mounted, programs cannot create
files there.

Without arguments the command starts the daemon again after lockfs down, and
repairs a missing unit. After lockfs restore it starts the restored server.

Anyone with the TOKEN can join the cluster, and all users of this host can read
command lines. To keep it secret, give it as @FILE, as - (standard input), or
in the variable ` + cli.JoinTokenVariable + `.` + cli.More + `A server votes as soon as it has caught up, unless you give --nonvoter. On a
server that has lost its disk, --bootstrap is refused: join with a token.`,
		Example: `  lockfs up --bootstrap
  lockfs up lockfs-server-AYZlm2x0...
  lockfs up @token --mount /srv/locks
  ssh a lockfs token create --role client | ssh b lockfs up -
  lockfs up`,
		Args: cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := needRoot("lockfs up"); err != nil {
				return err
			}
			if plan.token, err = readToken(args, cmd.InOrStdin()); err != nil {
				return err
			}
			if plan.bootstrap && plan.token != nil {
				return errors.New("--bootstrap creates a cluster and TOKEN joins one: give one of them")
			}
			r := &report{w: cmd.OutOrStdout()}
			if plan.json {
				r.w = cmd.ErrOrStderr()
			}
			done, err := plan.run(cmd.Context(), r)
			if err != nil {
				return err
			}
			if plan.json {
				return cli.PrintJSON(cmd.OutOrStdout(), done)
			}
			printTokens(cmd.OutOrStdout(), done.Tokens)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&plan.bootstrap, "bootstrap", false, "create a new cluster; once for a cluster")
	flags.BoolVar(&plan.nonvoter, "nonvoter", false, "join without a vote, until lockfs member promote")
	flags.StringVar(&plan.name, "name", "", "name of this host (default: its host name)")
	flags.StringVar(&plan.addr, "addr", "", "listen address of a server, HOST:PORT (default: port 7420 of the address towards the others)")
	flags.StringVar(&plan.advertise, "advertise", "", "address of this server for the others, HOST:PORT, if it differs from --addr")
	flags.StringVar(&plan.mount, "mount", "", "mount point (default "+defaultMount+")")
	flags.StringVar(&plan.data, "data", "", "data directory of a server (default "+defaultData+")")
	flags.DurationVar(&plan.wait, "wait", time.Minute, "time limit until the mount works")
	flags.BoolVar(&plan.json, "json", false, "print JSON; the steps go to standard error")
	cli.Often(flags, "bootstrap", "name", "mount", "addr", "nonvoter", "wait", "json")
	return cmd
}

// run makes this host match the plan, step by step. Each step can be repeated.
func (p *upPlan) run(ctx context.Context, r *report) (*outcome, error) {
	was, err := thisHost()
	if err != nil {
		return nil, err
	}
	if p.token == nil {
		if p.restored, err = findRestored(p.data, was); err != nil {
			return nil, err
		}
	}
	if was == nil && p.token == nil && !p.bootstrap && p.restored == nil {
		return nil, fmt.Errorf("this host is in no cluster: give a token from `lockfs token create` on a server, " +
			"or create a cluster with --bootstrap")
	}
	h, err := p.host(was)
	if err != nil {
		return nil, err
	}
	r.title("%s", h.describe())
	if err := os.MkdirAll(filepath.Dir(settingsFile), 0o755); err != nil { // commands of all users read the mount points there
		return nil, err
	}
	if err := p.identify(ctx, r, was, h); err != nil {
		return nil, err
	}
	if err := h.keepMounted(ctx, r, was, p.wait); err != nil {
		return nil, err
	}
	if h.role == identity.Server {
		h.showVoters(ctx, r)
	}
	done := &outcome{Host: h.name, Role: h.role.String(), Mount: h.mount, Data: h.data, Address: h.advertised(), Version: cli.ProgramVersion(), From: h.upgradedFrom}
	if p.bootstrap {
		if done.Tokens, err = h.firstTokens(ctx); err != nil {
			return nil, err
		}
	}
	if done.Changed = r.changed; !r.changed {
		r.title("everything is as it should be")
	}
	return done, nil
}

// host returns this host with the changes of the plan.
func (p *upPlan) host(was *host) (*host, error) {
	h := &host{role: identity.Server, mount: defaultMount, data: defaultData}
	var err error
	if was != nil {
		*h = *was
	} else if h.name, err = cli.HostName(); err != nil {
		return nil, err
	}
	if h.settings, _, err = readSettings(settingsFile); err != nil {
		return nil, err
	}
	if p.restored != nil {
		h.adopt(p.restored)
	}
	role := h.role
	if p.token != nil {
		role = p.token.Role
	}
	if was != nil && (role != was.role || p.bootstrap && was.role != identity.Server) {
		return nil, fmt.Errorf("this host is %s already: leave its cluster first with `lockfs leave`", was.describe())
	}
	if was != nil && p.name != "" && p.name != h.name {
		return nil, fmt.Errorf("this host is called %s in its cluster: run `lockfs leave`, and join under another name with a new token", h.name)
	}
	if p.nonvoter && (p.token == nil || role != identity.Server) {
		return nil, errors.New("--nonvoter is for a server that joins with a token; `lockfs member demote` takes the vote of a member")
	}
	h.role = role
	for value, given := range map[*string]string{&h.name: p.name, &h.mount: p.mount, &h.data: p.data} {
		if given != "" {
			*value = given
		}
	}
	if !identity.ValidHost(h.name) {
		_, err := identity.ParseName(h.role, h.name)
		return nil, fmt.Errorf("%w; give another name with --name", err)
	}
	if h.mount, err = filepath.Abs(h.mount); err != nil {
		return nil, err
	}
	if h.role == identity.Client {
		if p.addr != "" || p.advertise != "" || p.data != "" {
			return nil, errors.New("--addr, --advertise and --data are for servers, and this host is a client")
		}
		h.data = ""
	} else if h.data, err = filepath.Abs(h.data); err != nil {
		return nil, err
	}
	return h, p.configure(h)
}

// configure writes the settings of the daemon.
func (p *upPlan) configure(h *host) error {
	h.settings.set(roleVariable, h.role.String())
	h.settings.set(nameVariable, h.name)
	h.settings.set(mountVariable, h.mount)
	if h.role == identity.Client {
		h.settings.set(identityVariable, h.identityDir())
		return nil
	}
	h.settings.set(dataVariable, h.data)
	if p.nonvoter {
		h.settings.set(nonvoterVariable, "true")
	}
	if p.advertise != "" {
		h.settings.set(advertiseVariable, p.advertise)
	}
	switch {
	case p.addr != "":
		if host, port, err := net.SplitHostPort(p.addr); err != nil || host == "" || port == "" {
			return fmt.Errorf("--addr %q: give HOST:PORT", p.addr)
		}
		h.settings.set(addrVariable, p.addr)
	case h.settings.get(addrVariable) == "":
		address, err := p.ownAddress()
		if err != nil {
			return err
		}
		h.settings.set(addrVariable, netip.AddrPortFrom(address, defaultPort).String())
	}
	return nil
}

// ownAddress returns the address at which other hosts reach this one, if known.
func (p *upPlan) ownAddress() (netip.Addr, error) {
	if p.token != nil {
		return addressTowards(p.token.Addresses[0])
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	return onlyAddress(addresses)
}

// identify ensures that this host has an identity, from a token or as the first server of a cluster. A host
// that was set up as a server but has no data has lost them. Its cluster may live, and must not get a second
// one beside it.
func (p *upPlan) identify(ctx context.Context, r *report, was, h *host) error {
	credentials, err := identity.Load(h.identityDir())
	none := errors.Is(err, identity.ErrNone)
	switch {
	case none && p.token != nil:
		return h.enrol(ctx, r, p.token)
	case none && was != nil && h.role == identity.Server:
		return fmt.Errorf("this host is %s, but its identity in %s is lost: to bring it back, run `lockfs token create --role server --host %s` on another server "+
			"and `lockfs up TOKEN` here; to create a new cluster, run `lockfs leave` first", was.describe(), h.data, h.name)
	case p.bootstrap && (none || consensus.IsBootstrapping(h.data)):
		return h.bootstrap(r)
	case err != nil:
		return err
	}
	if p.token != nil && !slices.ContainsFunc(credentials.Authorities(), trusts(p.token)) {
		return fmt.Errorf("this host is in another cluster (CA %s) than the token (CA %s): "+
			"leave that cluster first with `lockfs leave`", credentials.Signer().Short(), p.token.Authority.Short())
	}
	if name := credentials.Name(); name.Host != h.name || name.Role != h.role {
		return fmt.Errorf("%s has the identity of %s, a %s: give this name with --name, or remove the identity", h.identityDir(), name.Host, name.Role)
	}
	if p.token != nil && h.role == identity.Client && !h.isKnown(ctx, credentials.Servers()) {
		return h.enrol(ctx, r, p.token) // revoked or forgotten
	}
	r.is("identity", "%s, CA %s", credentials.Name(), credentials.Signer().Short())
	return nil
}

// isKnown reports whether a server accepts the identity of this host.
func (h *host) isKnown(ctx context.Context, servers []string) bool {
	return h.askServers(ctx, servers, func(ctx context.Context, asked *cluster.Admin) error {
		_, err := asked.Members(ctx)
		return err
	}) == nil
}

// keepMounted has a daemon with these settings and a mount that works. A daemon may notice a moment after the
// unmount that its mount is gone; it is then started again.
func (h *host) keepMounted(ctx context.Context, r *report, was *host, wait time.Duration) error {
	daemon, kept, err := h.keep(ctx, r, was)
	if err != nil {
		return err
	}
	if err = h.awaitMount(ctx, r, daemon, kept, wait); !errors.Is(err, errUnmounted) {
		return err
	}
	if daemon, _, err = h.keep(ctx, r, h); err != nil {
		return err
	}
	return h.awaitMount(ctx, r, daemon, false, wait)
}

// keep writes settings and unit, and restarts the daemon if they changed. kept reports that a running daemon
// stays.
func (h *host) keep(ctx context.Context, r *report, was *host) (daemon service, kept bool, err error) {
	if was != nil && (!slices.Equal(was.settings.lines, h.settings.lines) || h.lostMount(ctx)) {
		if err := was.stopRunning(ctx, r); err != nil {
			return nil, false, fmt.Errorf("restart the daemon: %w", err)
		}
	}
	if daemon, err = h.service(); err != nil {
		return nil, false, err
	}
	running, err := daemon.running(ctx)
	if err != nil {
		return nil, false, err
	}
	if was != nil && was.mount != h.mount {
		if err := was.unprotect(r); err != nil {
			return nil, false, err
		}
	}
	changed, err := h.settings.write(settingsFile)
	if err != nil {
		return nil, false, err
	}
	if changed {
		r.did("settings", "%s", settingsFile)
	} else {
		r.is("settings", "%s", settingsFile)
	}
	installed, err := daemon.install()
	if err != nil {
		return nil, false, err
	}
	h.protect(r)
	if err := daemon.start(ctx); err != nil {
		return nil, false, err
	}
	upgraded := false
	if running {
		if upgraded, err = h.upgrade(ctx, daemon); err != nil {
			return nil, false, err
		}
	}
	switch {
	case upgraded:
		r.did("daemon", "%s; %s", daemon, describeUpgrade(h.upgradedFrom, cli.ProgramVersion()))
	case running && !installed:
		r.is("daemon", "%s", daemon)
	default:
		r.did("daemon", "%s", daemon)
	}
	return daemon, running && !upgraded, nil
}

// stopRunning is down for a running daemon, which may have another socket with other settings.
func (h *host) stopRunning(ctx context.Context, r *report) error {
	daemon, err := h.service()
	if err != nil {
		return err
	}
	running, err := daemon.running(ctx)
	if err != nil || !running {
		return err
	}
	return h.down(ctx, r, false)
}
