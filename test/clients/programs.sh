# What the scenes of TestPrograms have beside programs. A shell has $me, the name of its host, and $W, a directory on its
# local disk.

export LC_ALL=C HOME=$W EMAIL=$me@example.org HGUSER=$me HGPLAIN=1 GIT_CONFIG_NOSYSTEM=1 \
	GIT_AUTHOR_NAME=$me GIT_AUTHOR_EMAIL=$me GIT_COMMITTER_NAME=$me GIT_COMMITTER_EMAIL=$me GIT_TERMINAL_PROMPT=0

repo=$PWD/repo

# svn_commit NAME: a new file, by a working copy on the local disk.
svn_commit() {
	[ -d "$W/copy" ] || svn checkout -q "file://$repo" "$W/copy"
	(cd "$W/copy" && svn update -q && echo "$1" > "$1" && svn add -q "$1" && svn commit -q -m "commit $1")
}

# hg_commit NAME: a new file and one that all change, in a working copy that all share.
hg_commit() {
	(cd repo && echo "$1" > "$1" && hg add -q "$1" && hg commit -q -m "$1" "$1")
}

git_commit() {
	(cd "${2:-repo}" && echo "$1" > "$1" && git add "$1" && git commit -q -m "$1")
}

# tree: something to unpack, copy and remove.
tree() {
	mkdir -p "$1/sub/deep" && echo "$2" > "$1/f" && echo "$2" > "$1/sub/g" && echo "$2" > "$1/sub/deep/h" && ln -sfn "$2" "$1/link"
}

# replaced: other files under the same names.
replaced() {
	rm -rf "$1" && tree "$1" "$2"
}

look() { find "$1" -type f -exec cat {} + > /dev/null && readlink "$1/link" > /dev/null; }

# count FILE by > or by mv, under flock.
count_in() { (flock 9 && n=$(cat "$1") && echo $((n + 1)) > "$1") 9> "$1.lock"; }
count_by_mv() { (flock 9 && n=$(cat "$1") && echo $((n + 1)) > "$1.$me" && mv "$1.$me" "$1") 9> "$1.lock"; }

times() {
	local i
	for ((i = 0; i < $1; i++)); do "${@:2}" || return; done
}

# daemon NAME COMMAND...: runs until it is ended; says when the file that it makes is there.
daemon() {
	rm -f "$W/ready"
	"${@:2}" &
	echo $! > "$W/$1.pid"
	until [ -e "$W/ready" ]; do
		kill -0 $! 2> /dev/null || { wait $!; return; }
		sleep 0.02
	done
}

# ended NAME: ends it, and waits.
ended() {
	local pid
	pid=$(cat "$W/$1.pid") && kill "$pid" && { wait "$pid" 2> /dev/null || [ $? = 143 ]; }
}

zc_lock() {
	exec /usr/bin/python3 -W ignore -c '
import sys, time, zc.lockfile
try:
    lock = zc.lockfile.LockFile(sys.argv[1])
except zc.lockfile.LockError:
    sys.exit("taken")
open(sys.argv[2], "w").close()
time.sleep(1000)' "$1" "$W/ready"
}

# run_lock: a lock that its holder writes its pid into, as many do.
run_lock() {
	exec flock -F -n -E 75 "$1" sh -c 'echo $$ > "$1"; : > "$2"; exec sleep 1000' sh "$1" "$W/ready"
}

start_daemon() {
	start-stop-daemon --start --quiet --background --make-pidfile --pidfile "$1" --exec /bin/sleep -- 1000 || return
	until start-stop-daemon --status --pidfile "$1" --exec /bin/sleep; do sleep 0.02; done
}

stop_daemon() { start-stop-daemon --stop --quiet --retry 5 --remove-pidfile --pidfile "$1" --exec /bin/sleep; }

# stop_pid FILE: ends a process, waits for its end and removes its pid file.
stop_pid() {
	local pid
	until pid=$(cat "$1") && [ -n "$pid" ]; do sleep 0.02; done
	kill "$pid" && while kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
	rm "$1"
}
