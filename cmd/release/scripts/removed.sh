#!/bin/sh
# After the files are gone: dpkg says "remove", "upgrade" or "purge", rpm how many are left.
set -e

case $1 in
remove | 0)
	[ ! -d /run/systemd/system ] || systemctl daemon-reload
	rmdir /locks 2> /dev/null || true
	;;
purge)
	# The program that could undo it (lockfs mount-point unprotect) is gone.
	[ ! -e /etc/lockfs/mount-points ] || while read -r words dir; do
		case $words in *protected*) ;; *) continue ;; esac
		[ "$(findmnt --noheadings --output SOURCE --mountpoint "$dir")" != lockfs-bare ] || umount "$dir" || true
		chattr -i "$dir" 2> /dev/null || true
	done < /etc/lockfs/mount-points
	rm -rf /etc/lockfs /var/log/lockfs.log /run/lockfs
	for unit in lockfs-server.service lockfs-mount.service; do
		rm -rf "/etc/systemd/system/$unit" "/etc/systemd/system/$unit.d" "/etc/systemd/system/multi-user.target.wants/$unit"
	done
	rm -f /etc/systemd/system/lockfs.service
	rmdir /locks 2> /dev/null || true
	# The name by which a machine without an id of its own is known, which is of no use without data.
	[ ! -d /var/lib/lockfs ] || [ "$(ls -A /var/lib/lockfs)" != machine-id ] || rm -f /var/lib/lockfs/machine-id
	if [ -d /var/lib/lockfs ] && ! rmdir /var/lib/lockfs 2> /dev/null; then
		echo 'lockfs: /var/lib/lockfs has the data of a server, and stays.'
	fi
	;;
esac
