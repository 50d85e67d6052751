package fusefs

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// as runs a script as a user, of a group and of further ones.
func as(t testing.TB, dir string, user syscall.Credential, script string) (output string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `cd "$0" && eval "$1"`, dir, script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &user}
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", script, printed)
	return strings.TrimSpace(string(printed))
}

// users look at what makeLocks makes.
var users = []struct {
	name string
	syscall.Credential
	locks  string // paths; in brackets those of which no more is told
	closed string // what a name in a closed directory answers
}{
	{"root", syscall.Credential{}, "blind/lock closed/lock group/lock private public", "ENOENT"},
	{"nobody", syscall.Credential{Uid: nobody, Gid: nobody}, "blind/lock [private] public", "EACCES"},
	{"member", syscall.Credential{Uid: 1234, Gid: 1234, Groups: []uint32{5, 77}}, "blind/lock group/lock [private] public", "EACCES"},
}

// makeLocks makes root's, the holder of each named like it.
func makeLocks(t testing.TB, dir string) {
	t.Helper()
	shell(t, dir, "mkdir -m 700 closed; mkdir -m 711 blind; mkdir -m 2750 group; chgrp 77 group; chmod g+s group")
	for name, mode := range map[string]os.FileMode{
		"public": 0o644, "private": 0o600, "closed/lock": 0o644, "blind/lock": 0o644, "group/lock": 0o640,
	} {
		content := strings.Replace(swarmLock, "worker 1", "holder:"+name, 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), mode))
	}
}

// TestLocksAreListedToWhomCouldStatAndReadThem, and nobody gets what root has read before.
func TestLocksAreListedToWhomCouldStatAndReadThem(t *testing.T) {
	dir, _ := mountWithFacts(t)
	makeLocks(t, dir)
	for range 2 {
		for _, user := range users {
			var listed []string
			for line := range strings.Lines(as(t, dir, user.Credential, "cat .lockfs/locks")) {
				fields := strings.Fields(line)
				require.Len(t, fields, 8)
				path := fields[7]
				if fields[3] != "holder:"+path {
					require.Regexp(t, `^- - - - - - \d+ `+path+"\n?$", line)
					path = "[" + path + "]"
				}
				listed = append(listed, path)
			}
			require.ElementsMatch(t, strings.Fields(user.locks), listed, user.name)
			require.ElementsMatch(t, listed, strings.Fields(as(t, dir, user.Credential, `python3 -c '
import json
for lock in map(json.loads, open(".lockfs/locks.jsonl")):
    if lock["state"]:
        assert lock["holder"] == "holder:" + lock["path"], lock
        print(lock["path"])
    else:
        assert lock == {"path": lock["path"], "age_seconds": lock["age_seconds"], "state": "", "format": ""}, lock
        print("[%(path)s]" % lock)'`)), user.name)
		}
	}
}

// TestEventsAreToldToWhomCouldStatAndReadTheLock: those that are kept, and new ones to who waits for them.
func TestEventsAreToldToWhomCouldStatAndReadTheLock(t *testing.T) {
	dir, c := mountWithFacts(t)
	const reader = `python3 -c '
import json, sys
for line in sys.stdin:
    event = json.loads(line)
    path = event["lock_path"]
    if path in ("closed", "blind", "group"): continue
    if path == "end": break
    if "token" in event:
        assert event["holder"] == "holder:" + path, event
        print(path)
    else:
        assert set(event) == {"number", "event", "timestamp", "lock_name", "lock_path"}, event
        print("[%s]" % path)'`
	waiting := make(map[string]chan string)
	for _, user := range users {
		told := make(chan string, 1)
		waiting[user.name] = told
		cmd := exec.Command("sh", "-c", `cd "$0" && exec <.lockfs/events && echo >&3 && `+reader, dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &user.Credential}
		opened, opens, err := os.Pipe()
		require.NoError(t, err)
		cmd.ExtraFiles = []*os.File{opens}
		var printed bytes.Buffer
		cmd.Stdout, cmd.Stderr = &printed, &printed
		require.NoError(t, cmd.Start())
		go func() {
			err := cmd.Wait()
			told <- printed.String() + errorText(err)
		}()
		_, err = opened.Read(make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, errors.Join(opened.Close(), opens.Close()))
	}
	makeLocks(t, dir)
	c.awaitEvents(t, 5)
	shell(t, dir, "mkdir end")
	eventually(t, "all are told", func() bool {
		c.awaitEvents(t, 6)
		return strings.Contains(readFile(t, filepath.Join(dir, ".lockfs/history")), `"end"`)
	})
	for _, user := range users {
		require.ElementsMatch(t, strings.Fields(user.locks), strings.Fields(<-waiting[user.name]), user.name)
		require.ElementsMatch(t, strings.Fields(user.locks), strings.Fields(as(t, dir, user.Credential, reader+" <.lockfs/history")), user.name)
	}
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestNoNameIsLearntFromAnError: below why, kv and force it is that of the real path.
func TestNoNameIsLearntFromAnError(t *testing.T) {
	dir, _ := mountWithFacts(t)
	makeLocks(t, dir)
	for _, user := range users {
		require.Equal(t, strings.Repeat(user.closed+" ", 4)+"done", as(t, dir, user.Credential, `python3 -c '
import errno, os
for top in ("", ".lockfs/why/", ".lockfs/kv/", ".lockfs/force/"):
    try: os.stat(top + "closed/nothing")
    except OSError as e: print(errno.errorcode[e.errno], end=" ")
    if os.getuid() != 0:
        try: os.stat(top + "closed/lock"); print("found")
        except PermissionError: pass
    elif not top.endswith("force/"): open(top + "closed/lock").read()
print("done")'`), user.name)
	}
}

// TestOnlyReadersOfALockGetItsAttributes: their names are listed for no user.
func TestOnlyReadersOfALockGetItsAttributes(t *testing.T) {
	dir, _ := mountWithFacts(t)
	makeLocks(t, dir)
	for _, user := range users {
		require.Equal(t, map[bool]string{
			true: "holder:public holder:private", false: "holder:public EACCES [] EACCES",
		}[user.name == "root"], as(t, dir, user.Credential, `python3 -c '
import errno, os
print(os.getxattr("public", "user.lockfs.holder").decode(), end=" ")
try: print(os.getxattr("private", "user.lockfs.holder").decode())
except OSError as e:
    print(errno.errorcode[e.errno], os.listxattr("private"), end=" ")
    try: open(".lockfs/why/private")
    except OSError as e: print(errno.errorcode[e.errno])'`), user.name)
	}
}
