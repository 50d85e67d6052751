#!/bin/bash
# Runs the scripts of the specifications in a directory, mixed with the commands. Called with the program and the directory,
# in a mount namespace of its own: the directory becomes /tmp and /root there. Says "done" at the end, or what is wrong.
set -euo pipefail

here=$(cd "${0%/*}" && pwd)
mount -t tmpfs tmpfs /mnt
mkdir /mnt/bin /mnt/scripts
cp "$here"/* /mnt
touch /mnt/bin/lockfs
mount --bind "$1" /mnt/bin/lockfs
ln -s /mnt/bin/lockfs /mnt/scripts/swarm_lock.sh
mkdir -p "$2/tmp" "$2/root"
cd "$2"
mount --bind root /root
mount --bind tmp /tmp
cd /mnt
export TMPDIR=/mnt PATH=/mnt/bin:$PATH HOME=/mnt

wrong() { echo "wrong: $*"; exit 1; }

# ends CODE COMMAND...: it has to end with that code.
ends() {
	local want=$1 code=0
	shift
	"$@" > said 2>&1 || code=$?
	[ "$code" = "$want" ] || wrong "$* ended with $code: $(cat said)"
}

# says TEXT COMMAND...
says() {
	local want=$1
	shift
	"$@" > said 2>&1 || true
	grep -qF -- "$want" said || wrong "$* said $(cat said), and not $want"
}

# function NAME ARG...: of the lock manager (section 10.2), which is to be sourced.
function_of_manager() { bash -c '. ./tower-lock-manager.sh; "$@"' bash "$@"; }
snippet() { bash -c '. "./$0"; "$@"' "$@"; }

tower() {
	local locks=/root/tower-fleet/logs/locks id
	bash -e tower-setup.sh
	for id in req_1 job:7 x@y '{6F9619FF-8B86-D011-B42D-00CF4FC964FF}' "$(printf 'r%.0s' {1..200})"; do
		ends 0 function_of_manager acquire_lock app "$id" deploy-app 1.2.0
		ends 1 lockfs tower check app
		says "request_id         $id" lockfs tower check app
		ends 75 lockfs tower acquire app --request-id other --intent i --intent-version 1 --force-lock
		says 'Lock is held by active process' function_of_manager acquire_lock app other deploy-app 1.2.0
		says active snippet tower-stale.sh is_lock_stale "$locks/app.lock"
		ends 78 lockfs tower release app --request-id other
		ends 0 snippet tower-heartbeat.sh update_heartbeat "$locks/app.lock"
		ends 0 lockfs tower heartbeat app --request-id "$id"
		ends 1 lockfs tower check app
		ends 0 lockfs tower release app --request-id "$id"
		ends 0 lockfs tower acquire app --request-id "$id" --intent i --intent-version 1
		says 'Lock held by different request' function_of_manager release_lock app other
		says "\"request_id\": \"$id\"" bash tower-list.sh
		ends 1 env lock_path="$locks/app.lock" lock_json=mine bash tower-noclobber.sh
		ends 0 function_of_manager release_lock app "$id"
		ends 2 lockfs tower check app
	done
	ends 0 env lock_path="$locks/half.lock" lock_json='{"lock_version":' bash tower-noclobber.sh
	says 'is not a valid lock' lockfs tower acquire half --request-id r --intent i --intent-version 1
	rm "$locks/half.lock"

	# What scripts that count whole seconds take for stale, the commands do.
	ends 0 lockfs tower acquire "money-tracker-production" --request-id old --intent i --intent-version 1 --ttl 2
	until snippet tower-stale.sh is_lock_stale "$locks/money-tracker-production.lock" > said; do
		sleep 0.05
	done
	ends 0 lockfs tower acquire money-tracker-production --request-id new --intent i --intent-version 1 --force-lock --wait 2s
	bash -e tower-force-release.sh
	ends 2 lockfs tower check money-tracker-production
}

semaphore() {
	bash -e semaphore-create.sh
	ends 75 lockfs semaphore check /tmp/my.lock
	says '(shell-script)' lockfs semaphore check /tmp/my.lock
	ends 75 lockfs semaphore acquire /tmp/my.lock
	rm /tmp/my.lock
	ends 0 lockfs semaphore acquire /tmp/my.lock --tag shell-script
	{ cat semaphore-parse.py; echo 'print(sorted(parse_lock_file("/tmp/my.lock").items()))'; } > parse.py
	says "[('pid', '$$'), ('tag', 'shell-script'), ('timestamp'" python3 parse.py
	printf '# by hand\n  pid=%d  \ntimestamp=%d\t\ntag=odd \n' $$ "$(date +%s)" > /tmp/my.lock
	says "[('pid', '$$'), ('tag', 'odd'), ('timestamp'" python3 parse.py
	says "Held by process $$ (odd)" lockfs semaphore check /tmp/my.lock
	ends 0 lockfs semaphore release /tmp/my.lock
}

swarm() {
	bash swarm-nine-steps.sh > said 2>&1
	[ "$(grep -c ^PASS: said)" = 9 ] && ! grep -q ^FAIL said || wrong "nine steps: $(cat said)"
	mkdir -p /tmp/ai_swarm/locks
	{ echo 'lock_data = {"task_id": "t", "worker": "w", "acquired_at": "2025-02-02T10:00:00Z", "expires_at": ""}'
		cat swarm-acquire.py; } > acquire.py
	[ "$(python3 acquire.py /tmp/ai_swarm/locks t)" = "Lock acquired" ]
	ends 1 python3 acquire.py /tmp/ai_swarm/locks t
	[ "$(cat said)" = "$(scripts/swarm_lock.sh acquire t w 2> /dev/null)" ] || wrong "not as the snippet: $(cat said)"
	ends 0 scripts/swarm_lock.sh release t w
	ends 0 scripts/swarm_lock.sh acquire t w 60
	[ "$(python3 -c 'import datetime, json
l = json.load(open("/tmp/ai_swarm/locks/t.lock"))
at = lambda f: datetime.datetime.strptime(l[f], "%Y-%m-%dT%H:%M:%SZ")
print(int((at("expires_at") - at("acquired_at")).total_seconds()))')" = 60 ] || wrong "not 60 s"
	ends 1 python3 acquire.py /tmp/ai_swarm/locks t
	ends 0 scripts/swarm_lock.sh release t w
}

beads() {
	mkdir /tmp/.beads
	# The program that the script calls: the database is locked by the script.
	printf '#!/bin/sh\nlockfs beads check .beads | grep -q "^Locked by my-tool" || echo "wrong: it is not locked"\n' > bin/bd
	chmod +x bin/bd
	[ -z "$(cd /tmp && bash -e /mnt/beads.sh)" ] || wrong "bd found no lock"
	ends 0 lockfs beads check /tmp/.beads
	ends 0 lockfs wait /tmp/.beads --timeout 0s
	ends 0 lockfs beads acquire /tmp/.beads --holder me
	ends 76 lockfs wait /tmp/.beads --timeout 0s
	ends 0 lockfs beads release /tmp/.beads
}

tower
semaphore
swarm
beads
echo done
