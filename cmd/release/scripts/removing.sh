#!/bin/sh
# Before the files go: dpkg says "remove" or "upgrade", rpm how many will be left. An upgrade stops nothing.
set -e

case $1 in
remove | 0) ;;
*) exit 0 ;;
esac
# It refuses while programs use the mount, and names them; so does the removal then.
if grep -qs '^LOCKFS_ROLE=' /etc/lockfs/lockfs.env; then
	lockfs down
fi

# dpkg keeps the settings until the package is purged, and with them the protection of the mount points. rpm knows no purge.
[ "$1" != 0 ] || lockfs mount-point unprotect
