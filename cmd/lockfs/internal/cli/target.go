package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
)

// Asked is the daemon or the servers that a command connects to.
type Asked struct {
	Addresses []string // of servers, or unix:PATH of a daemon on this host
	Security  *rpc.Security
}

const unixPrefix = "unix:"

// Explain adds the next step to an error if no server answered.
func (a *Asked) Explain(err error) error {
	switch {
	case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, rpc.ErrUnreachable):
		return err
	case strings.HasPrefix(a.Addresses[0], unixPrefix):
		return fmt.Errorf("%w; the command asked the daemon of this host (%s); `lockfs doctor` checks whether this host reaches a quorum of servers",
			err, strings.TrimPrefix(a.Addresses[0], unixPrefix))
	}
	return fmt.Errorf("%w; check that `lockfs server` runs on %v and that a quorum of servers runs, or give other servers with --servers",
		err, a.Addresses)
}

// answerTime limits how long a daemon of this host may take to name its cluster.
const answerTime = 3 * time.Second

// Find returns the target of a command: the servers of --servers, the socket of --socket, or a daemon of this
// host.
func (f *ClusterFlags) Find(ctx context.Context) (*Asked, error) {
	switch {
	case len(f.Servers) > 0:
		security, err := f.security()
		return &Asked{f.Servers, security}, err
	case f.Socket != "":
		if info, err := os.Stat(f.Socket); err != nil {
			return nil, fmt.Errorf("--socket: %w; `lockfs doctor` lists the sockets of this host", err)
		} else if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("--socket: %s is not a socket; `lockfs doctor` lists the sockets of this host", f.Socket)
		}
		return &Asked{[]string{unixPrefix + f.Socket}, nil}, nil
	}
	return findDaemon(ctx)
}

// security returns the certificates for a connection to --servers; nil with --insecure.
func (f *ClusterFlags) security() (*rpc.Security, error) {
	if f.Insecure {
		if f.Identity != "" {
			return nil, errors.New("--identity and --insecure exclude each other: give one of them")
		}
		return nil, nil
	}
	dir := f.Identity
	if dir == "" {
		dir = DefaultIdentity()
	}
	credentials, err := identity.Load(dir)
	switch {
	case err != nil && f.Identity == "":
		return nil, fmt.Errorf("servers require a certificate: give --identity DIR, or --insecure if they run with it (%w)", err)
	case err != nil:
		return nil, fmt.Errorf("--identity: %w", err)
	}
	return certrenew.ForCommand(credentials), nil
}

// findDaemon returns the daemon with the most knowledge of the cluster. It fails if daemons of several
// clusters run here.
func findDaemon(ctx context.Context) (*Asked, error) {
	sockets, err := Sockets()
	if err != nil {
		return nil, err
	}
	sockets = slices.DeleteFunc(sockets, func(socket string) bool { return !isServed(socket) })
	if len(sockets) == 0 {
		return nil, noDaemon()
	}
	if len(sockets) > 1 {
		if sockets, err = ofOneCluster(ctx, sockets); err != nil {
			return nil, err
		}
	}
	return &Asked{[]string{unixPrefix + sockets[0]}, nil}, nil
}

// isServed reports whether the socket has a listener and this user may connect.
func isServed(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, answerTime)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// ofOneCluster returns the daemons with a reply. It fails if they belong to several clusters.
func ofOneCluster(ctx context.Context, sockets []string) ([]string, error) {
	clusters, failed := make([]string, len(sockets)), make([]error, len(sockets))
	var asking sync.WaitGroup
	for i, socket := range sockets {
		asking.Go(func() { clusters[i], failed[i] = clusterOf(ctx, socket) })
	}
	asking.Wait()
	var answering, lines []string
	known := make(map[string]bool)
	for i, socket := range sockets {
		if failed[i] == nil {
			answering = append(answering, socket)
			known[clusters[i]] = true
			lines = append(lines, fmt.Sprintf("\n  --socket %s  (cluster %s)", Word(socket), Word(clusters[i])))
		}
	}
	switch len(known) {
	case 0:
		return nil, fmt.Errorf("the daemon at %s does not answer: %w", sockets[0], failed[0])
	case 1:
		return answering, nil
	}
	return nil, errors.New("daemons of several clusters run on this host; choose one:" + strings.Join(lines, ""))
}

// clusterOf returns the cluster ID of a daemon, or its members if it has none.
func clusterOf(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	peers := rpc.NewPeers(nil)
	defer peers.Close()
	status, err := peers.Node(unixPrefix+socket).Status(ctx, &clusterpb.StatusRequest{})
	if id := status.GetCluster(); id != "" {
		return id, nil
	}
	var members []string
	for _, member := range status.GetMembers() {
		members = append(members, member.GetName()+"/"+member.GetId())
	}
	slices.Sort(members)
	return "of " + strings.Join(members, ","), err
}

func noDaemon() error {
	return fmt.Errorf("no lockfs daemon runs on this host (looked in %s): run the command on a server or a host with a mount, mount here with `lockfs up`, "+
		"or give --servers with --identity", strings.Join(SocketDirs(), " and "))
}
