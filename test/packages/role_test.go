package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// enterHost stands for ssh: its last two arguments are a host and a command. The host's pid is in a file of its name.
const enterHost = `#!/bin/sh
while [ $# -gt 2 ]; do shift; done
exec nsenter --target "$(cat "$(dirname "$0")/$1.pid")" --all chroot ` + testcluster.RootDir + ` sh -c "$2"
`

const playbook = `
- hosts: all
  gather_facts: false
  roles: [lockfs]
`

// TestAnsibleRole has the role of a release make two servers and a client of new hosts, and change nothing in a second run.
func TestAnsibleRole(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	dir, made := t.TempDir(), released(t, newer)
	inventory := "[all:vars]\nansible_ssh_executable=" + dir + "/ssh\nansible_ssh_transfer_method=piped\nansible_python_interpreter=/usr/bin/python3\n" +
		"lockfs_package=" + the(t, made, "*.deb") + "\n[all]\n"
	var all []*root
	for name, role := range map[string]string{"a": "server", "b": "server", "c": "client"} {
		r := newRoot(t, net, name)
		all = append(all, r)
		stays := r.Start("sleep", "infinity")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".pid"), fmt.Append(nil, stays.Pid()), 0o600))
		inventory += name + " lockfs_first=a lockfs_role=" + role + "\n"
	}
	for name, text := range map[string]string{"ssh": enterHost, "hosts": inventory, "site.yml": playbook} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "roles"), 0o700))
	said, err := exec.Command("tar", "-xzf", the(t, made, "lockfs-ansible-*.tar.gz"), "-C", filepath.Join(dir, "roles")).CombinedOutput()
	require.NoError(t, err, "%s", said)
	play := func() string {
		t.Helper()
		run := exec.Command("ansible-playbook", "-i", "hosts", "site.yml")
		run.Dir, run.Env = dir, append(os.Environ(), "ANSIBLE_HOST_KEY_CHECKING=false", "ANSIBLE_NOCOLOR=1", "HOME="+dir)
		said, err := run.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return string(said)
	}
	play()
	for _, r := range all {
		require.Regexp(t, `(?m)^b +voter`, r.mustRun(t, "lockfs", "member", "list"))
		sessions := r.mustRun(t, "lockfs", "session", "list")
		for _, other := range all {
			require.Regexp(t, `(?m)^[0-9a-f]{16} +`+other.Name()+` `, sessions)
		}
	}
	again := play()
	for _, r := range all {
		require.Regexp(t, `(?m)^`+r.Name()+` +: ok=\d+ +changed=0 `, again)
	}
}
