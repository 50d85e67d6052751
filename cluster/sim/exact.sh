#!/usr/bin/env bash
# exact.sh DIR: writes into a directory what makes goroutines in a bubble of testing/synctest run in the same order each time, as an
# overlay for the Go compiler, and prints the flags with which a test is built so:
#
#   go test $(cluster/sim/exact.sh DIR) -c -o sim.test ./cluster/sim
#
# In such a program, run with GOMAXPROCS=1 and GOGC=off and without address space randomization (setarch -R), what is random in the
# runtime and shows is drawn from a sequence of the bubble (which ready case a select takes, the order of a map) or, outside of it, of the
# goroutine, where each thread would have one of its own. Nothing depends on how long something takes: a goroutine is not preempted, one in a
# system call keeps its processor, nobody who waits for a mutex loses patience, and no thread is begun, and given memory, because another
# has not quite lain down yet.
set -euo pipefail
dir=$1
runtime=$(go env GOROOT)/src/runtime
mkdir -p "$dir"

# patch FILE LINES SCRIPT: so many lines of the file are new when it is patched.
replace=()
patch() {
	sed -e "$3" "$runtime/$1" > "$dir/$1"
	[ "$(diff "$runtime/$1" "$dir/$1" | grep -c '^>')" = "$2" ] || { echo "exact.sh: $1 is not what it was: see to this script" >&2; exit 1; }
	replace+=("\"$runtime/$1\": \"$dir/$1\"")
}

draw='if gp := getg().m.curg; gp != nil {\n\t\treturn'
patch rand.go 27 "
	s|^\tglobalRand.state.Init(\*seed)|\tfor i := range seed {\n\t\tseed[i] = byte(i)\n\t}\n&|
	s|^// cheaprand64 is a |\
//go:nosplit\nfunc (gp *g) draw() uint64 {\n\tdraws := \&gp.draws\n\tif gp.bubble != nil {\n\t\tdraws = \&gp.bubble.draws\n\t}\n\t*draws += 0x9e3779b97f4a7c15\n\
	z := *draws\n\tz = (z ^ z>>30) * 0xbf58476d1ce4e5b9\n\tz = (z ^ z>>27) * 0x94d049bb133111eb\n\treturn z ^ z>>31\n}\n\n\
//go:nosplit\nfunc drawn() uint32 {\n\t$draw uint32(gp.draw())\n\t}\n\treturn cheaprand()\n}\n\n&|
	s|^func rand() uint64 {|&\n\t$draw gp.draw()\n\t}|"
patch runtime2.go 1 's|^\tbubble  \*synctestBubble|&\n\tdraws   uint64 // how its sequence goes on|'
patch select.go 1 's|j := cheaprandn(uint32(norder + 1))|j := drawn() % uint32(norder+1)|'
patch sema.go 2 's|s.ticket = cheaprand()|s.ticket = drawn()|
	/^func internal_sync_nanotime/,/^}/ s|return nanotime()|return 0|'
patch time.go 1 's|t.rand = cheaprand()|t.rand = drawn()|'
patch synctest.go 3 's|^type synctestBubble struct {|&\n\tdraws uint64 // how its sequence goes on|
	s|^func synctestRun(f func()) {|&\n\tgetg().m.p.ptr().schedtick = 0\n|'
patch proc.go 10 's|^\tnewg.parentGoid = |\tnewg.draws = 0\n&|
	s|^\tnmp := mget()$|&\n\tfor n := 0; nmp == nil \&\& !lockheld \&\& sched.mnext >= 3 \&\& n < 5000; n++ {\n\t\tunlock(\&sched.lock)\n\t\tusleep(20)\n\t\tlock(\&sched.lock)\n\t\tnmp = mget()\n\t}|
	s|^func retake(now int64) uint32 {|&\n\tif true {\n\t\treturn 0\n\t}|'

(IFS=,; printf '{"Replace": {%s}}\n' "${replace[*]}" > "$dir/overlay.json")
echo "-overlay=$dir/overlay.json"
