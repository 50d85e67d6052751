package recipes

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// plays are what the hosts do with each page.
var plays = map[string]func(*testing.T, *scene){
	"cron": playCron, "deploy": playDeploy, "runners": playRunners, "leader": playLeader, "agents": playAgents, "systemd": playSystemd,
	"ansible": playAnsible, "repositories": playRepositories, "postgresql": playPostgreSQL, "terraform": playTerraform, "caches": playCaches, "sqlite": playSQLite,
	"proper-lockfile": playProperLockfile, "filelock": playFilelock, "from": playFrom,
}

// TestRecipes plays one page after the other, and nothing in them is left out.
func TestRecipes(t *testing.T) {
	t.Parallel()
	all, dir := newHosts(t)
	overview := readPage("recipes", all[0].manual(t, "recipes"))
	listed := 0
	for name, play := range plays {
		t.Run(name, func(t *testing.T) {
			s := &scene{t: t, page: readPage(name, all[0].manual(t, "recipes", name)), dir: dir, a: all[0], b: all[1], c: all[2], all: all}
			for _, h := range all {
				h.scene = s
			}
			defer s.clear()
			began := time.Now()
			play(t, s)
			s.page.requireAllDone(t)
			require.Empty(t, s.log("wrong"))
			t.Logf("%v", time.Since(began).Round(time.Millisecond))
		})
		listed++
	}
	t.Run("overview", func(t *testing.T) {
		all[0].scene = &scene{t: t}
		require.Contains(t, all[0].must(overview.block(t, "lockfs help recipes cron")), "# recipes cron: ")
		overview.requireAllDone(t)
		require.Equal(t, listed, strings.Count(all[0].manual(t, "recipes"), "\n- `"), "pages that nobody plays")
	})
}

func (h *host) manual(t testing.TB, words ...string) string {
	t.Helper()
	return h.MustRunIn(t, "/usr/local/bin/lockfs", append([]string{"help"}, words...)...)
}

// notAtTheTurnOf waits if a day's turn is about to end.
func notAtTheTurnOf(t testing.TB, hour, minute int) {
	t.Helper()
	hosts.Eventually(t, "that the next turn begins", func() (string, bool) {
		now := time.Now().UTC()
		turn := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, time.UTC)
		if turn.Before(now) {
			turn = turn.AddDate(0, 0, 1)
		}
		return now.String(), turn.Sub(now) > hosts.Patience/2
	})
}

func playCron(t *testing.T, s *scene) {
	notAtTheTurnOf(t, 2, 30)
	s.programs(map[string]string{"nightly": alone})
	lines := strings.Split(strings.TrimSpace(s.page.file(t, "/etc/cron.d/nightly")), "\n")
	require.Len(t, lines, 2)
	variable, job := lines[0], strings.Fields(lines[1])
	require.Equal(t, []string{"0", "3", "*", "*", "*", "root"}, job[:6])
	// As cron does.
	command := "env -i " + variable + " sh -c " + quoted(strings.Join(job[6:], " "))
	var begun []*hosts.Process
	for _, h := range s.all {
		begun = append(begun, h.start(command))
	}
	skipped := 0
	for _, p := range begun {
		if err := p.Wait(); err != nil {
			require.ErrorContains(t, err, "exit status 77")
			skipped++
		}
		require.Empty(t, p.Log(), "cron would send a mail")
	}
	require.Equal(t, 2, skipped)
	require.Len(t, s.log("log"), 1)
	ran, _, _ := strings.Cut(s.log("log")[0], " ")
	require.Contains(t, s.c.must(s.block("cat /locks/nightly")), ran)
}

func playDeploy(t *testing.T, s *scene) {
	s.files("/usr/local/bin/deploy")
	s.programs(map[string]string{"roll-out": busy})
	first := s.a.start("exec deploy v1")
	require.Equal(t, []string{"a shop v1"}, s.await(1))
	_, err := s.b.run("deploy v2")
	require.ErrorContains(t, err, "exit status 75")
	require.ErrorContains(t, err, "host: a\n")
	_, err = s.b.run("rm /locks/shop.lock")
	require.ErrorContains(t, err, "Device or resource busy")
	second := s.b.start(s.block("-- roll-out shop v2"))
	require.NoError(t, second.WaitOutput("waiting for /locks/shop.lock"))
	first.Kill()
	require.Equal(t, "b shop v2", s.await(2)[1])
	s.enough()
	require.NoError(t, second.Wait(), second.Log())
	s.c.must(s.block("LOCKFS_TOKEN"))
	require.Regexp(t, `^c shop v2 --token [1-9][0-9]*$`, s.log("log")[2])
	s.a.must("deploy v3")
	require.Equal(t, "a shop v3", s.log("log")[3])
}

func playRunners(t *testing.T, s *scene) {
	s.programs(map[string]string{"make": busy})
	var begun []*hosts.Process
	for _, h := range append(s.all, s.all...) {
		begun = append(begun, h.start(s.block("--slots 3")))
	}
	hosts.Eventually(t, "that three have a slot and three wait", func() (string, bool) {
		waiting := 0
		for _, p := range begun {
			waiting += strings.Count(p.Log(), "waiting for")
		}
		return "", waiting == 3 && len(s.log("log")) >= 3
	})
	require.Len(t, s.log("log"), 3)
	held := s.b.must(s.block("lockfs locks builds"))
	require.Equal(t, 3, strings.Count(held, "builds/slot-"), held)
	s.enough()
	for _, p := range begun {
		require.NoError(t, p.Wait(), p.Log())
	}
	require.Len(t, s.log("log"), 6)
}

func playLeader(t *testing.T, s *scene) {
	s.files("/usr/local/bin/candidate")
	s.programs(map[string]string{"lead": `echo "$(hostname)" >> /srv/log; exec sleep 1000`})
	require.LessOrEqual(t, strings.Count(s.page.files["/usr/local/bin/candidate"], "\n"), 5)
	leader := s.a.start("exec candidate")
	s.await(1)
	b, c := s.b.start("exec candidate"), s.c.start("exec candidate")
	who := s.block("cat /locks/leader")
	require.Equal(t, "a\n", s.c.must(who))
	leader.Kill()
	next := s.await(2)[1]
	require.Equal(t, next+"\n", s.a.must(who))
	b.Kill()
	c.Kill()

	told := s.a.start(s.block("leader.lock -- lead"))
	s.b.eventually("test -s /locks/leader.lock")
	s.b.must("lockfs rm --force /locks/leader.lock")
	require.ErrorContains(t, told.Wait(), "exit status 124")
}

func playAgents(t *testing.T, s *scene) {
	s.files("/usr/local/bin/agent")
	s.programs(map[string]string{"solve": `echo "$1" >> /srv/log; until [ -e /srv/enough ]; do sleep 0.05; done`, "bd": alone})
	s.a.must(s.block("mkdir -p /locks/tasks"))
	s.a.must("cd /locks/tasks && touch one two three four")
	var agents []*hosts.Process
	for i, h := range s.all {
		agents = append(agents, h.start("agent worker-"+string(rune('1'+i))))
	}
	for _, task := range s.await(len(agents)) {
		require.Regexp(t, `(?m)^`+task+`: .*worker-[123]`, s.c.must(s.block("swarm list")))
	}
	s.enough()
	for _, agent := range agents {
		<-agent.Ended() // some say in the end that another has the last task
	}
	require.ElementsMatch(t, []string{"one", "two", "three", "four"}, s.log("log"))
	require.Empty(t, s.a.must("ls /locks/tasks"))
	require.Contains(t, s.b.must(s.block("swarm list")), "No locks")
	s.everywhere(s.block("lockfs beads run"))
	require.Len(t, s.log("log"), 7)
}

func playSystemd(t *testing.T, s *scene) {
	reindex, scheduler := "/etc/systemd/system/reindex.service", "/etc/systemd/system/scheduler.service"
	s.files(reindex, scheduler)
	s.a.must("lockfs docs units /etc/systemd/system && systemctl --root=/ enable lockfs-mount && cd /etc/systemd/system && systemd-analyze verify ./reindex.service ./scheduler.service")
	setting := func(unit, name string) string {
		for line := range strings.Lines(s.page.file(t, unit)) {
			if value, is := strings.CutPrefix(line, name+"="); is {
				return "exec " + strings.TrimSpace(value)
			}
		}
		t.Fatalf("%s has no %s", unit, name)
		return ""
	}
	s.programs(map[string]string{"reindex": busy, "scheduler": busy})
	deploying := s.a.start("exec lockfs run --format pid /locks/shop.lock -- sleep 1000")
	s.b.eventually("test -s /locks/shop.lock")
	condition := s.b.start(setting(reindex, "ExecCondition"))
	_, err := s.b.run("lockfs wait --timeout 0s /locks/shop.lock")
	require.Error(t, err)
	deploying.Kill()
	require.NoError(t, condition.Wait())

	first := s.b.start(setting(reindex, "ExecStart"))
	s.await(1)
	_, err = s.c.run(setting(reindex, "ExecStart"))
	require.ErrorContains(t, err, "exit status "+strings.TrimPrefix(setting(reindex, "SuccessExitStatus"), "exec "))
	here := s.a.start(setting(scheduler, "ExecStart"))
	require.Equal(t, "a ", s.await(2)[1])
	there := s.c.start(setting(scheduler, "ExecStart"))
	require.NoError(t, there.WaitOutput("waiting for"))
	here.Kill()
	require.Equal(t, "c ", s.await(3)[2])
	s.enough()
	require.NoError(t, first.Wait(), first.Log())
	require.NoError(t, there.Wait(), there.Log())
}

func playAnsible(t *testing.T, s *scene) {
	notAtTheTurnOf(t, 0, 0)
	s.files("site.yml")
	s.programs(map[string]string{"restart-shop": alone, "send-report": `echo "$(hostname)" >> /srv/reported`})
	for _, h := range s.all {
		h.write(map[string]string{"hosts": "[shop]\nlocalhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n"})
	}
	play := s.block("ansible-playbook")
	begun := []*hosts.Process{s.a.start(play), s.b.start("ansible-playbook -i hosts site.yml")}
	for _, p := range begun {
		require.NoError(t, p.Wait(), p.Log())
	}
	require.Len(t, s.log("log"), 2)
	require.Len(t, s.log("reported"), 1)
}

func playFrom(t *testing.T, s *scene) {
	s.programs(map[string]string{"deploy": alone, "make": alone, "lead": alone})
	s.everywhere(s.block("flock /locks/deploy.lock"))
	require.Len(t, s.log("log"), 3)
	s.a.must("rm /locks/deploy.lock")
	for _, block := range []string{"--slots 3", "leader.lock", "--format swarm"} {
		s.a.must(s.block(block))
	}
	require.Len(t, s.log("log"), 3+3+2+1)
}
