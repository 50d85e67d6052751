package protocols

import (
	"os"
	"strings"
	"testing"

	"lockfs/test/testcluster"

	"github.com/stretchr/testify/require"
)

// commands is what scripts start with: ends, says and saysnot check how a command ends and what it says, and said and unsaid what
// the last one said.
const commands = `cd "$1"; PATH=$2:$PATH; export SWARM_STATE_DIR=$1 TOWER_LOCK_DIR=$1/locks
	mkdir -m 700 locks
	wrong() { echo "wrong: $*"; exit 1; }
	ends() {
		local want=$1 code=0
		shift
		"$@" > said 2>&1 || code=$?
		[ "$code" = "$want" ] || wrong "$* ended with $code: $(cat said)"
	}
	said() { grep -qF -- "$1" said || wrong "not $1, but $(cat said)"; }
	unsaid() { ! grep -qF -- "$1" said || wrong "$(cat said)"; }
	says() { "${@:2}" > said 2>&1 || true; said "$1"; }
	saysnot() { "${@:2}" > said 2>&1 || true; unsaid "$1"; }
	on_mount() { [ -d ../.lockfs ]; }
	gone() { # FILE with the number of a process: a busy machine takes a while to let go of one that was killed
		for _ in $(seq 500); do
			kill -0 "$(cat "$1")" 2> /dev/null || return 0
			sleep 0.02
		done
		wrong "$1 lives"
	}
	now() { date -u -d "$1" +%Y-%m-%dT%H:%M:%SZ; }
	towerlock() { # NAME CREATED HEARTBEAT TTL
		(set -C; printf '{"lock_version": "v1", "lock_name": "%s", "request_id": "r1", "actor": "a", "intent": "i", "intent_version": "1",
			"host_id": "%s", "pid": 1, "created_at": "%s", "last_heartbeat_at": "%s", "ttl_seconds": %s}' \
			"$1" "$HOSTNAME" "$(now "$2")" "$(now "$3")" "$4" > "locks/$1.lock")
	}
	request="--request-id r --intent i --intent-version 1"
`

// TestCommandsOnDiskAndMount has each do what it promises, in an ordinary directory and on a mount.
func TestCommandsOnDiskAndMount(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	for name, script := range map[string]string{
		"leftovers are removed, and no locks": `
			leftovers() {
				for left in locks/.lockfs-AAAAAAAAAAAAAAAAAAAAAAAAAA .beads/.lockfs-AAAAAAAAAAAAAAAAAAAAAAAAAA locks/a.lock.0123456789abcdef.tmp; do
					(set -C; printf 'pid=1\ntimestamp=1\n' > "$left")
					touch -d '2 hours ago' "$left"
				done
			}
			mkdir .beads
			for take in "semaphore acquire locks/s.lock" "swarm acquire t w" "run --format pid locks/p.lock -- true" \
				"run --format swarm locks/r.lock -- true" "run --slots 2 locks -- true" "run --once-per 1h locks/daily -- true"; do
				leftovers
				saysnot .lockfs- lockfs swarm list
				saysnot 0123456789abcdef lockfs tower list
				ends 0 lockfs $take
				[ ! -e locks/.lockfs-AAAAAAAAAAAAAAAAAAAAAAAAAA ] || wrong "$take left it"
				rm -f .beads/.lockfs-A* locks/a.lock.*
			done
			leftovers
			ends 0 lockfs beads acquire .beads --holder me --pid $$
			ends 0 lockfs tower acquire a $request
			[ -z "$(ls -A locks .beads | grep -e '\.tmp$' -e 'AAA' | grep -v .lockfs-)" ] || wrong "$(ls -A locks)"
			[ ! -e .beads/.lockfs-AAAAAAAAAAAAAAAAAAAAAAAAAA ] || wrong "beads left it"`,

		"text that is not UTF-8 is refused": `
			mkdir .beads
			bad=$(printf 'x\377')
			ends 125 lockfs semaphore acquire s.lock --tag "$bad"
			ends 1 lockfs swarm acquire t "$bad"
			ends 1 lockfs swarm acquire "$bad" w
			ends 125 lockfs beads acquire .beads --holder "$bad"
			ends 125 lockfs beads acquire .beads --holder me --version "$bad"
			ends 125 lockfs tower acquire t --request-id "$bad" --intent i --intent-version 1
			ends 125 lockfs tower acquire t $request --actor "$bad"
			ends 125 lockfs tower acquire t $request --metadata "a=$bad"
			ends 125 lockfs tower acquire t --request-id r --intent "$bad" --intent-version 1
			ends 125 lockfs run --format swarm locks/t.lock --holder "$bad" -- true
			ends 125 lockfs run --tag "$bad" s.lock -- true
			[ -z "$(ls -A locks .beads | grep -v :)" ] && [ ! -e s.lock ] || wrong "$(ls -A . locks .beads)"`,

		"a lock is never stale early": `
			early() { # SECONDS COMMAND...: since it was taken, until the command says that it is stale
				local least=$1
				shift
				until "$@" > said 2>&1; do sleep 0.05; done
				[ $(($(date +%s%N) - taken)) -ge $((least * 1000000000)) ] || wrong "$* is early"
			}
			expired() { lockfs swarm check t | grep Expired; }
			taken=$(date +%s%N)
			ends 0 lockfs tower acquire a $request --ttl 2 && early 2 lockfs tower check a
			taken=$(date +%s%N)
			ends 0 lockfs swarm acquire t w 2 && early 2 expired
			ends 0 lockfs semaphore acquire s.lock --stale-timeout 2s
			if on_mount; then # which judges by its rules
				said 'has no effect here: on this lockfs mount s.lock is stale after 1h'
			else
				taken=$(date +%s%N)
				ends 0 lockfs semaphore release s.lock
				ends 0 lockfs semaphore acquire s.lock
				early 2 lockfs semaphore check s.lock --stale-timeout 2s
			fi`,

		"a heartbeat is after the creation, and not far ahead": `
			towerlock before now '15 minutes ago' 900
			ends 3 lockfs tower check before
			said 'last_heartbeat_at: lies before created_at'
			ends 75 lockfs tower acquire before $request --force-lock
			towerlock ahead now 'now + 1 day' 900
			ends 1 lockfs tower check ahead
			said "ahead of this host's clock"
			ends 75 lockfs tower acquire ahead $request --force-lock
			said "ahead of this host's clock"
			lockfs tower check ahead --json | grep -qE '"age_seconds": [0-9]+,?$' || wrong "$(lockfs tower check ahead --json)"`,

		"there is a place for events, or a warning": `
			ends 0 lockfs tower acquire a $request
			if on_mount; then
				unsaid 'no audit log'
			else
				said 'there is no audit log'
			fi
			ends 0 lockfs tower acquire b $request --audit-log audit
			unsaid 'no audit log'
			says lock_acquired cat audit`,

		"what was killed by the loss of its lock is its whole process group": `
			lockfs run s.lock -- sh -c 'sleep 1000 & echo $! > grandchild; wait' > said 2>&1 &
			run=$!
			until [ -s grandchild ]; do sleep 0.02; done
			rm s.lock
			code=0; wait $run || code=$?
			[ $code = 124 ] || wrong "$code: $(cat said)"
			gone grandchild`,

		"on a terminal what a command has started is killed too": `
			cat > job <<-'JOB'
				trap "" TERM HUP
				echo $$ > $1
				while :; do sleep 0.02; done
			JOB
			script -qec 'lockfs run s.lock --grace 100ms -- bash -c "setsid -f bash job session; bash job background & bash job child"' \
				/dev/null > said 2>&1 < /dev/null &
			run=$!
			until [ -s session ] && [ -s background ] && [ -s child ]; do sleep 0.02; done
			rm s.lock
			code=0; wait $run || code=$?
			[ $code = 124 ] || wrong "$code: $(cat said)"
			for of in session background child; do
				gone $of
			done`,

		"what is to be removed by hand can be": `
			ends 0 lockfs tower acquire a $request
			ln -s a.lock locks/link.lock
			ends 125 lockfs tower release link --request-id r
			hand=$(sed -n 's/.*remove it with .\(.*\)[\x60].*/\1/p' said)
			case $hand in "lockfs rm --force "*) on_mount ;; "rm "*) ! on_mount ;; *) false ;; esac || wrong "$hand: $(cat said)"
			$hand
			[ ! -L locks/link.lock ] || wrong "$hand did not remove it"
			ends 125 lockfs tower acquire b $request --ttl 1
			ends 125 lockfs run --format tower locks/b.lock --ttl 1 -- true`,

		"under the name of the script": `
			ln -s "$(type -P lockfs)" swarm_lock.sh
			for call in "" acquire "acquire t" release "acquire --other t" other; do
				ends 1 ./swarm_lock.sh $call
				unsaid 'lockfs swarm'
				said swarm_lock.sh
			done
			saysnot 'lockfs swarm' ./swarm_lock.sh acquire --help
			ends 1 ./swarm_lock.sh acquire t w -1
			said 'ttl_seconds: -1 is not a number from 1'
			ends 0 ./swarm_lock.sh acquire t w
			[ "$(./swarm_lock.sh acquire t w 2> /dev/null)" = 'Lock already exists' ] || wrong "it does not say so"`,

		"waiting for a beads directory": `
			mkdir .beads
			ends 0 lockfs wait .beads --timeout 0s
			ends 0 lockfs beads acquire .beads --holder me --pid $$
			ends 76 lockfs wait .beads --timeout 0s
			said .exclusive-lock
			echo data > .beads/db
			unsaid 'remove .beads '
			lockfs wait .beads > said 2>&1 & wait=$!
			ends 0 lockfs beads release .beads --pid $$
			wait $wait || wrong "$(cat said)"
			mkdir data && touch data/x
			says 'counts as free once it is gone' lockfs wait data --timeout 0s
			unsaid 'remove '`,

		"slots and turns": `
			lockfs run --slots 2 --format pid slots -- sh -c 'echo x >> in; while [ ! -e go ]; do sleep 0.02; done' & one=$!
			lockfs run --slots 2 --format pid slots -- sh -c 'echo x >> in; while [ ! -e go ]; do sleep 0.02; done' & two=$!
			until [ "$(cat in 2> /dev/null | wc -l)" = 2 ]; do sleep 0.02; done
			ends 75 lockfs run --slots 2 --format pid slots --nonblock -- true
			ends 76 lockfs run --slots 2 --format pid slots --wait 100ms -- true
			touch go
			wait $one $two
			ends 0 lockfs run --slots 2 --format pid slots --nonblock -- true
			ends 3 lockfs run --once-per day@03:00 --retry nightly -- sh -c 'exit 3'
			ends 0 lockfs run --once-per day@03:00 --retry nightly -- sh -c 'echo turn >> turns'
			ends 77 lockfs run --once-per day@03:00 --retry nightly -- sh -c 'echo turn >> turns'
			[ ! -s said ] || wrong "it said $(cat said)"
			[ "$(cat turns)" = turn ] && grep -q '^run *succeeded' nightly || wrong "$(cat turns nightly)"`,

		"a name that is not there": `
			ends 0 lockfs semaphore acquire s.lock
			if on_mount; then
				ends 1 lockfs locks NOSUCH
				ends 1 lockfs locks "$PWD/NOSUCH"
				unsaid '{'
				for age in $(lockfs locks "$PWD" --json | grep -o '"age_seconds": [-0-9]*' | cut -d' ' -f2); do
					[ "$age" -ge 0 ] || wrong "an age of $age"
				done
			else
				ends 1 lockfs rm s.lock
			fi`,
	} {
		for where, dir := range map[string]string{"disk": t.TempDir(), "mount": c.Path(strings.Fields(name)[0] + "-" + strings.Fields(name)[1])} {
			t.Run(name+" on a "+where, func(t *testing.T) {
				t.Parallel()
				bin := t.TempDir()
				require.NoError(t, os.Symlink(c.Program, bin+"/lockfs"))
				c.Nodes[0].Host.MustRun(t, "mkdir", "-p", dir)
				said, err := c.Nodes[0].Host.Run("env", "LOCKFS_SERVERS="+c.Nodes[0].Addr(), "bash", "-euc", commands+script+"\necho done", "bash", dir, bin)
				require.NoError(t, err, said)
				require.Equal(t, "done\n", said)
			})
		}
	}
}
