package rpc

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestCallersOnASocketAreKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.sock")
	listener, err := ListenSocket(path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o666), info.Mode().Perm())
	callers := make(chan Caller, 1)
	s := newServer(map[byte]Handler{whoAmI: {Do: func(ctx context.Context, _ []byte) (proto.Message, error) {
		callers <- CallerOf(ctx)
		return wrapperspb.String(""), nil
	}}}, socketLimits, standardTimes, func() {}, func(Caller) {})
	go func() { _ = s.Serve(listener) }()
	defer s.Close()
	defer func() { _ = listener.Close() }()

	_, err = say(t.Context(), newTestClient(t, "unix:"+path), whoAmI, "")
	require.NoError(t, err)
	groups, err := syscall.Getgroups()
	require.NoError(t, err)
	got := <-callers
	require.Equal(t, RoleUser, got.Role)
	require.Equal(t, uint32(os.Getuid()), got.UID)
	require.Equal(t, uint32(os.Getgid()), got.GID)
	require.Len(t, got.Groups, len(groups))
	for _, group := range groups {
		require.True(t, slices.Contains(got.Groups, uint32(group)))
	}
	require.Empty(t, got.Host)

	_, err = ListenSocket(path)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = say(t.Context(), newTestClient(t, "unix:"+path), whoAmI, "")
	require.NoError(t, err, "it is still there")
}

func TestSocketsOfTheDeadAreReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.sock")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	again, err := ListenSocket(path)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	require.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	_, err = ListenSocket(path)
	require.Error(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "text", string(content), "it is none")
}

func TestCallerStrings(t *testing.T) {
	require.Equal(t, "local", CallerOf(t.Context()).String())
	require.Equal(t, "uid 7", Caller{Role: RoleUser, UID: 7}.String())
	require.True(t, strings.HasPrefix(Caller{Role: RoleServer, Host: "a"}.String(), "server a at "))
}
