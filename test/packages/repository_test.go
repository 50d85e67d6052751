package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// makeKey makes a key that signs, in a directory of its own for gpg.
func makeKey(t *testing.T) {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") // short, for the socket of the agent
	require.NoError(t, err)
	t.Setenv("GNUPGHOME", home)
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	said, err := exec.Command("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "release@lockfs.test", "rsa3072", "sign", "never").CombinedOutput()
	require.NoError(t, err, "%s", said)
}

// TestRepositories: apt installs lockfs from the signed repository of a release, and refuses a changed one. The repository for dnf has the
// signatures that dnf checks: of the list of packages, and of each package.
func TestRepositories(t *testing.T) {
	makeKey(t)
	net := hosts.New(t)
	r := newRoot(t, net, "a")
	dir := release(t, "--built", testcluster.Program(t), "--version", newer, "--url", "file://"+r.shared, "--sign", "release@lockfs.test")
	formula, err := os.ReadFile(filepath.Join(dir, "lockfs.rb"))
	require.NoError(t, err)
	sum, err := exec.Command("sha256sum", the(t, dir, "lockfs_*_linux_*[46]")).Output()
	require.NoError(t, err)
	require.Contains(t, string(formula), `sha256 "`+string(sum[:64])+`"`)
	said, err := exec.Command("cp", "-r", filepath.Join(dir, "repository"), r.shared).CombinedOutput()
	require.NoError(t, err, "%s", said)
	repository := filepath.Join(r.shared, "repository")

	lists := "-o Dir::Etc::sourcelist=/etc/apt/sources.list.d/lockfs.sources -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root -o Acquire::Languages=none"
	r.sh(t, `mkdir -p /etc/apt/keyrings; cp "$1/lockfs.asc" /etc/apt/keyrings; cp "$1/lockfs.sources" /etc/apt/sources.list.d`, repository)
	r.sh(t, "apt-get "+lists+" update; apt-get "+lists+" install --yes --no-install-recommends lockfs")
	require.Equal(t, newer+"\n", r.mustRun(t, "dpkg-query", "-W", "-f", "${Version}\n", "lockfs"))
	require.NotContains(t, r.mustRun(t, "dpkg-query", "-W", "-f", "${Maintainer}\n", "lockfs"), "root@localhost")
	r.sh(t, `find "$1/apt" -name InRelease -exec sed -i 's/^Origin: lockfs/Origin: other/' {} +`, repository)
	_, err = r.run("sh", "-ec", "apt-get "+lists+" -o APT::Update::Error-Mode=any update")
	require.ErrorContains(t, err, "BADSIG")

	repomd := filepath.Join(repository, "rpm/repodata/repomd.xml")
	said, err = exec.Command("gpg", "--batch", "--verify", repomd+".asc", repomd).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.FileExists(t, the(t, filepath.Join(repository, "rpm/repodata"), "*primary.xml*"))
	database := t.TempDir()
	said, err = exec.Command("rpmkeys", "--dbpath", database, "--import", filepath.Join(repository, "lockfs.asc")).CombinedOutput()
	require.NoError(t, err, "%s", said)
	said, err = exec.Command("rpmkeys", "--dbpath", database, "--checksig", the(t, filepath.Join(repository, "rpm"), "*.rpm")).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "digests signatures OK")
	of, err := os.ReadFile(filepath.Join(repository, "lockfs.repo"))
	require.NoError(t, err)
	require.Contains(t, string(of), "\nbaseurl=file://"+r.shared+"/repository/rpm\ngpgcheck=1\nrepo_gpgcheck=1\n")
}

// TestHelpOfReleases is printed at once, by the script and by the command, and names each flag.
func TestHelpOfReleases(t *testing.T) {
	program, err := releaser()
	require.NoError(t, err)
	for _, flag := range []string{"-h", "--help"} {
		byScript, err := exec.Command("../../.ci/release", "--version", "1", flag).Output()
		require.NoError(t, err)
		byCommand, err := exec.Command(program, flag).CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, string(byCommand), string(byScript))
		require.True(t, strings.HasPrefix(string(byScript), "Usage: .ci/release "))
	}
}
