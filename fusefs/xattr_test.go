package fusefs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestXattrs(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	path := writeFile(t, here, "f", "")
	elsewhere := filepath.Join(there, "f")

	require.NoError(t, unix.Setxattr(path, "user.b", []byte("hello"), 0))
	require.NoError(t, unix.Setxattr(path, "user.a", nil, unix.XATTR_CREATE))
	require.ErrorIs(t, unix.Setxattr(path, "user.b", nil, unix.XATTR_CREATE), syscall.EEXIST)
	require.ErrorIs(t, unix.Setxattr(path, "user.c", nil, unix.XATTR_REPLACE), syscall.ENODATA)

	buffer := make([]byte, 100)
	size, err := unix.Getxattr(elsewhere, "user.b", buffer)
	require.NoError(t, err)
	require.Equal(t, "hello", string(buffer[:size]))
	size, err = unix.Getxattr(elsewhere, "user.b", nil)
	require.NoError(t, err, "asking for the size")
	require.Equal(t, 5, size)
	_, err = unix.Getxattr(elsewhere, "user.b", buffer[:4])
	require.ErrorIs(t, err, syscall.ERANGE)
	size, err = unix.Getxattr(elsewhere, "user.a", buffer)
	require.NoError(t, err)
	require.Zero(t, size)

	size, err = unix.Listxattr(elsewhere, buffer)
	require.NoError(t, err)
	require.Equal(t, "user.a\x00user.b\x00", string(buffer[:size]))
	size, err = unix.Listxattr(elsewhere, nil)
	require.NoError(t, err)
	require.Equal(t, 14, size)
	_, err = unix.Listxattr(elsewhere, buffer[:10])
	require.ErrorIs(t, err, syscall.ERANGE)

	require.NoError(t, unix.Removexattr(elsewhere, "user.b"))
	require.ErrorIs(t, unix.Removexattr(path, "user.b"), syscall.ENODATA)
	_, err = unix.Getxattr(path, "user.b", buffer)
	require.ErrorIs(t, err, syscall.ENODATA)
	require.ErrorIs(t, unix.Setxattr(path, "user.big", make([]byte, 5000), 0), syscall.ENOSPC)
	require.NoError(t, unix.Setxattr(here, "user.dir", []byte("too"), 0))
}

func TestXattrsThatAreRefused(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	path := writeFile(t, dir, "f", "")
	for _, name := range []string{
		"system.posix_acl_access", "system.posix_acl_default", "security.capability", "security.selinux", "trusted.x",
	} {
		_, err := unix.Getxattr(path, name, nil)
		require.ErrorIs(t, err, syscall.EOPNOTSUPP, name)
	}
	for _, name := range []string{"system.posix_acl_access", "security.selinux", "trusted.x"} {
		require.ErrorIs(t, unix.Removexattr(path, name), syscall.EOPNOTSUPP, name)
	}
	require.ErrorIs(t, unix.Setxattr(path, "security.x", []byte("x"), 0), syscall.EOPNOTSUPP)
	require.ErrorIs(t, unix.Setxattr(path, "trusted.x", []byte("x"), 0), syscall.EOPNOTSUPP)
	acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 4, 0, 4, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255}
	require.ErrorIs(t, unix.Setxattr(path, "system.posix_acl_access", acl, 0), syscall.EOPNOTSUPP)
	require.ErrorIs(t, unix.Setxattr(path, "user.", []byte("x"), 0), syscall.EINVAL)

	require.NoError(t, os.Symlink("f", filepath.Join(dir, "l")))
	require.ErrorIs(t, unix.Lsetxattr(filepath.Join(dir, "l"), "user.x", []byte("x"), 0), syscall.EPERM)
}
