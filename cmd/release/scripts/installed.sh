#!/bin/sh
# After the files are there: dpkg says "configure" and which version was there, rpm how many there are now.
set -e

# Nothing below may touch what is mounted there: without a majority of the servers that would hang.
[ -e /etc/lockfs ] || mkdir -p /etc/lockfs
mkdir /locks 2> /dev/null || true

[ ! -d /run/systemd/system ] || systemctl daemon-reload

# Nothing but lockfs may create files in its mount points: a lock in the directory below would be this host's alone. What this cannot
# protect, lockfs doctor reports.
lockfs mount-point protect || true

if grep -qs '^LOCKFS_ROLE=' /etc/lockfs/lockfs.env; then
	echo 'lockfs: what runs goes on with the version before, until `lockfs up`, on one host after the other.'
elif [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
	echo 'lockfs: `lockfs up TOKEN` makes this host one of a cluster, `lockfs up --bootstrap` begins one.'
fi
