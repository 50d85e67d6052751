package recipes

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func playRepositories(t *testing.T, s *scene) {
	s.more = []string{
		"RESTIC_REPOSITORY=/srv/backup/restic", "RESTIC_PASSWORD=secret", "RESTIC_PROGRESS_FPS=0", "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes",
	}
	s.a.must("mkdir /srv/backup && borg init -e none /srv/backup/borg")
	s.a.must(s.block("restic init"))
	s.everywhere(s.block("restic backup /etc"))
	s.a.must(s.block("lockfs rule set"))
	killed := s.c.start("exec restic backup --stdin < <(exec sleep 1000)")
	s.b.eventually("test -n \"$(ls /locks/restic)\"")
	_, err := s.b.run("restic forget --prune --keep-last 1")
	require.ErrorContains(t, err, "already locked")
	killed.Kill()
	s.b.eventually("test -z \"$(ls /locks/restic)\"")
	s.b.must("restic forget --prune --keep-last 1")

	s.everywhere(s.block("borg create"))
	require.Equal(t, 3, strings.Count(s.a.must("borg list /srv/backup/borg"), "\n"))
	killed = s.a.start("exec borg create /srv/backup/borg::cut-short - < <(exec sleep 1000)")
	s.b.eventually("test -e /srv/backup/borg/lock.exclusive")
	killed.Kill()
	_, err = s.b.run("borg prune --lock-wait 0 --keep-daily 7 /srv/backup/borg")
	require.ErrorContains(t, err, "Failed to create/acquire the lock")
	s.b.must(s.block("borg break-lock"))
}

// terraformCalls makes the calls of Terraform by which it locks and writes a local state.
const terraformCalls = `#!/usr/bin/python3
import fcntl, json, os, sys
if sys.argv[1] == "apply":
    path = "/locks/shop.tfstate"
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+") as state:
        try:
            fcntl.lockf(state, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit("Error acquiring the state lock")
        info = "/locks/.shop.tfstate.lock.info"
        with open(info, "w") as told:
            json.dump({"Who": os.uname().nodename}, told)
        state.truncate(0)
        state.write("{}")
        state.flush()
        os.fsync(state.fileno())
        os.unlink(info)
`

// postmaster makes the calls with which PostgreSQL creates the lock file beside its socket (CreateLockFile), and runs until it is told to end.
const postmaster = `#!/usr/bin/python3
import errno, os, signal, sys
path = "/locks/pg/.s.PGSQL.5432.lock"
for _ in range(100):
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        break
    except FileExistsError:
        pass
    try:
        with open(path) as held:
            pid = int((held.readline().strip() or "0"))
    except FileNotFoundError:
        continue
    try:
        os.kill(pid, 0)
        sys.exit("lock file already exists")
    except OSError as e:
        if e.errno != errno.ESRCH:
            sys.exit("lock file already exists")
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as e:
        sys.exit("could not remove old lock file: " + e.strerror)
os.write(file, b"%d\n/srv/data\n1700000000\n5432\n/locks/pg\n" % os.getpid())
os.fsync(file)
os.close(file)
print("ready", flush=True)
signal.pause()
`

func playPostgreSQL(t *testing.T, s *scene) {
	for _, h := range s.all {
		h.write(map[string]string{"/usr/local/bin/postmaster": postmaster})
	}
	s.a.must(s.block("lockfs rule set"))
	s.files("postgresql.conf")
	require.Contains(t, s.a.must("cat postgresql.conf"), "'/locks/pg'")
	for range 3 {
		first := s.a.start("exec postmaster")
		require.NoError(t, first.WaitOutput("ready"))
		for _, h := range []*host{s.b, s.c} {
			_, err := h.run("postmaster")
			require.Error(t, err, "two postmasters")
		}
		first.Kill()
		s.b.eventually("test ! -e /locks/pg/.s.PGSQL.5432.lock")
	}
	next := s.b.start("exec postmaster")
	require.NoError(t, next.WaitOutput("ready"))
	next.Kill()
}

func playTerraform(t *testing.T, s *scene) {
	s.more = []string{"CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1"}
	s.files("main.tf")
	if _, err := exec.LookPath("terraform"); err != nil {
		for _, h := range s.all {
			h.write(map[string]string{"/usr/local/bin/terraform": terraformCalls})
		}
	}
	for _, h := range s.all[:2] {
		h.must(s.block("terraform init"))
	}
	require.NotEmpty(t, s.c.must("cat /locks/shop.tfstate"))
	held := s.c.start(`exec python3 -uc 'import fcntl, time; f = open("/locks/shop.tfstate", "r+"); fcntl.lockf(f, fcntl.LOCK_EX); print("held"); time.sleep(1000)'`)
	require.NoError(t, held.WaitOutput("held"))
	const apply = "terraform apply -auto-approve -no-color"
	_, err := s.b.run(apply)
	require.ErrorContains(t, err, "Error acquiring the state lock")
	held.Kill()
	s.b.must(s.block("lockfs run"))
}

// load is how huggingface_hub loads a file: under a lock below .locks, unless somebody has it by then.
const load = `
import os, subprocess
from filelock import FileLock
cache = os.environ["HF_HUB_CACHE"]
lock = os.path.join(cache, ".locks", "models--x", "etag.lock")
os.makedirs(os.path.dirname(lock), exist_ok=True)
with FileLock(lock):
    if not os.path.exists(cache + "/blob"):
        subprocess.run(["work"], check=True)
        open(cache + "/blob", "w").close()
`

func playCaches(t *testing.T, s *scene) {
	s.more = []string{"HF_HUB_CACHE=/srv/cache/hub"}
	s.programs(map[string]string{"work": alone})
	s.a.must(s.block("/locks/hf-hub"))
	s.everywhere("python3 -c " + quoted(load))
	require.Len(t, s.log("log"), 1)
	s.a.must("mkdir -p /srv/cache/torch/extension && touch /srv/cache/torch/extension/lock")
	const build = `
import os, subprocess
lock = os.environ.get("TORCH_EXTENSIONS_DIR", "/srv/cache") + "/extension/lock"
os.makedirs(os.path.dirname(lock), exist_ok=True)
os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
subprocess.run(["work"], check=True)
os.remove(lock)
`
	for _, h := range s.all {
		h.write(map[string]string{"prepare.py": build, "build.py": build})
	}
	s.everywhere(s.block("datasets.lock"))
	s.everywhere(s.block("torch.lock"))
	require.Len(t, s.log("log"), 1+3+3)
}

func playSQLite(t *testing.T, s *scene) {
	count := func(h *host) string {
		return h.must("sqlite3 /locks/jobs.db 'pragma integrity_check; select count(*) from jobs'")
	}
	s.a.must(s.block("create table jobs (name, host, at)"))
	add := s.block("insert into jobs")
	s.everywhere("for i in 1 2 3 4; do\n" + add + "\ndone")
	require.Equal(t, "ok\n12\n", count(s.a))

	// Pages of what is not committed get to the database itself.
	cut := s.a.start(`exec python3 -uc '
import sqlite3, time
jobs = sqlite3.connect("/locks/jobs.db")
jobs.execute("pragma cache_size = 1")
for i in range(20):
    jobs.execute("insert into jobs values (?, ?, ?)", ("x" * 3000, "a", "now"))
print("written")
time.sleep(1000)'`)
	require.NoError(t, cut.WaitOutput("written"))
	require.NotEqual(t, "0\n", s.b.must("stat -c %s /locks/jobs.db-journal"))
	_, err := s.b.run("sqlite3 /locks/jobs.db 'select count(*) from jobs'")
	require.ErrorContains(t, err, "database is locked")
	cut.Kill()
	require.Equal(t, "ok\n12\n", count(s.b))

	_, err = s.c.run("sqlite3 /locks/jobs.db \"insert into jobs values ('reindex', 'c', zeroblob(300000))\"")
	require.ErrorContains(t, err, "disk I/O error")
	require.Equal(t, "ok\n12\n", count(s.c))

	_, err = s.a.run("sqlite3 /locks/jobs.db 'pragma journal_mode = wal; " + "select count(*) from jobs'")
	require.ErrorContains(t, err, "disk I/O error")
	_, err = s.b.run(add)
	require.ErrorContains(t, err, "disk I/O error")
	s.c.must(s.block("journal_mode = delete"))
	s.b.must(add)
	require.Equal(t, "ok\n13\n", count(s.a))
	s.everywhere(s.block("/srv/jobs.db"))
}

func playProperLockfile(t *testing.T, s *scene) {
	s.more = []string{"NODE_PATH=/usr/share/nodejs"}
	s.files("job.js")
	s.programs(map[string]string{"work": alone, "long-work": busy})
	for _, h := range s.all {
		h.write(map[string]string{"work.js": `
const { execFile } = require('child_process')
const run = require('util').promisify(execFile)
module.exports = () => run(process.env.WORK || 'work')
`})
	}
	s.a.must(s.block("lockfs rule set"))
	s.everywhere("node job.js")
	require.Len(t, s.log("log"), 3)
	first := s.a.start("WORK=long-work exec node job.js")
	s.await(4)
	_, err := s.b.run("rmdir /locks/job.lock")
	require.ErrorContains(t, err, "Device or resource busy")
	next := s.b.start("exec node job.js")
	first.Kill()
	require.NoError(t, next.Wait(), next.Log())
	require.Equal(t, "b ", s.log("log")[4])
	s.enough()
}

func playFilelock(t *testing.T, s *scene) {
	s.files("job.py", "soft.py")
	s.programs(map[string]string{"work": alone})
	s.a.must(s.block("lockfs rule set"))
	s.everywhere("python3 job.py")
	s.everywhere("python3 soft.py")
	s.everywhere(s.block("lockfs run"))
	require.Len(t, s.log("log"), 9)
	s.programs(map[string]string{"work": busy})
	for _, script := range []string{"job.py", "soft.py"} {
		before := len(s.log("log"))
		first := s.a.start("exec python3 " + script)
		s.await(before + 1)
		next := s.b.start("exec python3 " + script)
		first.Kill()
		require.Equal(t, "b ", s.await(before + 2)[before+1])
		s.enough()
		require.NoError(t, next.Wait(), next.Log())
		s.a.must("rm /srv/enough")
	}
}
