#!/bin/sh
# Boots systemd in place of this process, which begins namespaces of its own, with a file system that begins as this machine's and the
# program lockfs in it: systemd.sh DIR PROGRAM. It starts nothing by itself.
set -e
cd "$1"
mount -t tmpfs of-this-host .
mkdir new work root
mount -t overlay of-this-host -o lowerdir=/,upperdir=new,workdir=work root
cp "$2" root/usr/local/bin/lockfs
rm -rf root/usr/lib/systemd/system/*.wants root/usr/lib/systemd/system/*.requires root/etc/systemd/system/*.wants
for unit in tmp.mount systemd-journald.socket systemd-journald-dev-log.socket; do ln -sf /dev/null "root/etc/systemd/system/$unit"; done
: > root/etc/fstab
hostname > root/etc/hostname
mkdir -p root/etc/systemd/system/lockfs-server.service.d
cat > root/etc/systemd/system/lockfs-server.service.d/test.conf << 'END'
[Service]
ExecStartPre=sh -c 'while [ -e /run/wait ]; do sleep 0.1; done'
WatchdogSec=10s
StandardOutput=append:/run/said
StandardError=append:/run/said
END
mount -t proc proc root/proc
mount --rbind /dev root/dev
mount -t sysfs sysfs root/sys
mount -t cgroup2 cgroup root/sys/fs/cgroup
mount -t fusectl fusectl root/sys/fs/fuse/connections
mount -t tmpfs of-this-host root/run
mkdir root/locks
exec env -i container=test PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	chroot root /lib/systemd/systemd --unit=basic.target --log-target=console --show-status=no
