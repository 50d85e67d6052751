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

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/enrolment"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
)

// Asked is whom a command asks.
type Asked struct {
	Addresses []string // of servers, or unix:PATH of a daemon on this host
	Security  *rpc.Security
}

// unixPrefix makes an address of the path of a socket.
const unixPrefix = "unix:"

// Explain says what to do when nobody answers.
func (a *Asked) Explain(err error) error {
	switch {
	case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, rpc.ErrUnreachable):
		return err
	case strings.HasPrefix(a.Addresses[0], unixPrefix):
		return fmt.Errorf("%w; the daemon of this host was asked (%s): `lockfs doctor` tells whether a majority of the servers runs, and is reached from here",
			err, strings.TrimPrefix(a.Addresses[0], unixPrefix))
	}
	return fmt.Errorf("%w; see whether `lockfs server` runs at %v and a majority of the servers does, or name others with --servers",
		err, a.Addresses)
}

// answerTime is how long a daemon of this host may take to say which cluster it is of.
const answerTime = 3 * time.Second

// Find answers whom a command asks: the servers that are given, the socket that is given, or the daemons of this host.
func (f *ClusterFlags) Find(ctx context.Context) (*Asked, error) {
	switch {
	case len(f.Servers) > 0:
		security, err := f.security()
		return &Asked{f.Servers, security}, err
	case f.Socket != "":
		if info, err := os.Stat(f.Socket); err != nil {
			return nil, fmt.Errorf("--socket: %w; `lockfs doctor` finds those of this host", err)
		} else if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("--socket: %s is no socket; `lockfs doctor` finds those of this host", f.Socket)
		}
		return &Asked{[]string{unixPrefix + f.Socket}, nil}, nil
	}
	return findDaemon(ctx)
}

// security is what this host shows the servers that are named, and how it knows them.
func (f *ClusterFlags) security() (*rpc.Security, error) {
	if f.Insecure {
		if f.Identity != "" {
			return nil, errors.New("--identity is not shown to servers that are asked with --insecure: give one of them")
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
		return nil, fmt.Errorf("servers want to know who asks: give --identity DIR, or --insecure if they were started so (%w)", err)
	case err != nil:
		return nil, fmt.Errorf("--identity: %w", err)
	}
	return enrolment.ForCommand(credentials), nil
}

// findDaemon prefers the daemon that knows most. Where there are several they must be of one cluster, as a command is for one.
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

// isServed tells whether somebody listens who lets this user in.
func isServed(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, answerTime)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// ofOneCluster answers the daemons of these that say which cluster they are of, if that is one.
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
	return nil, errors.New("daemons of several clusters run here; say which is meant:" + strings.Join(lines, ""))
}

// clusterOf says which cluster a daemon is of: by its members where it has no id.
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
	return fmt.Errorf("no lockfs daemon runs here (looked in %s): run this on a server or a mount, make this host one with `lockfs up`, "+
		"or give --servers with --identity", strings.Join(SocketDirs(), " and "))
}
