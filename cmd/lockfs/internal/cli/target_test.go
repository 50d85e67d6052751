package cli

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// fakeDaemon is of a cluster, and knows nothing else.
type fakeDaemon struct {
	rpc.Node
	cluster string
}

func (d fakeDaemon) Status(context.Context, *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	return &clusterpb.StatusReply{Cluster: d.cluster}, nil
}

func serveDaemon(t *testing.T, socket, cluster string) {
	listener, err := rpc.ListenSocket(socket)
	require.NoError(t, err)
	server := rpc.NewServer(fakeDaemon{cluster: cluster}, func() {}, func(rpc.Caller) {})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Close)
}

// flagsOf are the flags of a command line.
func flagsOf(t *testing.T, args ...string) *ClusterFlags {
	var f ClusterFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Add(flags)
	require.NoError(t, flags.Parse(args))
	return &f
}

func TestCommandsFindTheDaemonOfTheirHost(t *testing.T) {
	t.Setenv(SocketDirVariable, filepath.Join(t.TempDir(), "s"))
	_, err := flagsOf(t).Find(t.Context())
	require.ErrorContains(t, err, "no lockfs daemon runs on this host (looked in "+OwnSocketDir()+")")

	require.NoError(t, MakeSocketDir())
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: ServerSocket("dead")})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	_, err = flagsOf(t).Find(t.Context())
	require.ErrorContains(t, err, "no lockfs daemon runs on this host")

	serveDaemon(t, MountSocket("/locks"), "one")
	found, err := flagsOf(t, "--insecure").Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, &Asked{Addresses: []string{"unix:" + MountSocket("/locks")}}, found)

	serveDaemon(t, ServerSocket("a"), "one")
	found, err = flagsOf(t).Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, &Asked{Addresses: []string{"unix:" + ServerSocket("a")}}, found, "who knows more")

	serveDaemon(t, DevSocket("/tmp/locks"), "another")
	_, err = flagsOf(t).Find(t.Context())
	require.ErrorContains(t, err, "daemons of several clusters run on this host")
	require.ErrorContains(t, err, "--socket "+DevSocket("/tmp/locks")+"  (cluster another)")

	found, err = flagsOf(t, "--socket", DevSocket("/tmp/locks")).Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"unix:" + DevSocket("/tmp/locks")}, found.Addresses)
	_, err = flagsOf(t, "--socket", t.TempDir()).Find(t.Context())
	require.ErrorContains(t, err, "is not a socket")
}

func TestServersAreAskedAsTheyWantToBe(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	found, err := flagsOf(t, "--servers", "10.0.0.1:7420,10.0.0.2:7420", "--insecure").Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, &Asked{Addresses: []string{"10.0.0.1:7420", "10.0.0.2:7420"}}, found)

	_, err = flagsOf(t, "--servers", "10.0.0.1:7420", "--identity", t.TempDir()).Find(t.Context())
	require.ErrorContains(t, err, "--identity: ")
	_, err = flagsOf(t, "--servers", "10.0.0.1:7420", "--identity", t.TempDir(), "--insecure").Find(t.Context())
	require.ErrorContains(t, err, "give one of them")
}

func TestWhatToDoWhenNobodyAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	require.ErrorContains(t, (&Asked{Addresses: []string{"unix:/run/x"}}).Explain(ctx.Err()), "(/run/x)")
	require.ErrorContains(t, (&Asked{Addresses: []string{"a:1"}}).Explain(ctx.Err()), "[a:1]")
	require.NoError(t, (&Asked{Addresses: []string{"a:1"}}).Explain(nil))
}
