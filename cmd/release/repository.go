package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// repositoryPrograms are the programs that make and sign repositories, with their packages in Debian.
var repositoryPrograms = map[string]string{"gpg": "gpg", "reprepro": "reprepro", "createrepo_c": "createrepo-c", "rpmsign": "rpm"}

// checkRepository returns an error before anything is built if the repositories cannot be made.
func (r *release) checkRepository() error {
	if r.url == "" {
		return errors.New("--sign: give --url too, which the files for apt and dnf name")
	}
	for program, pkg := range repositoryPrograms {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("--sign: %w (Debian: apt-get install %s)", err, pkg)
		}
	}
	listed, err := output("gpg", "--batch", "--with-colons", "--list-secret-keys", r.key)
	if err != nil {
		return fmt.Errorf("--sign: gpg has no secret key %s: %w", r.key, err)
	}
	for line := range strings.Lines(listed) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			r.key = fields[9]
			return nil
		}
	}
	return fmt.Errorf("--sign: gpg lists no fingerprint of %s", r.key)
}

// writeRepository writes the folder repository: signed repositories for apt and dnf, the public key, and the
// files that name them on a host.
func (r *release) writeRepository() error {
	dir := filepath.Join(r.out, "repository")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := output("gpg", "--batch", "--armor", "--output", filepath.Join(dir, "lockfs.asc"), "--export", r.key); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"lockfs.sources": "Types: deb\nURIs: %s/repository/apt\nSuites: stable\nComponents: main\nSigned-By: /etc/apt/keyrings/lockfs.asc\n",
		"lockfs.repo":    "[lockfs]\nname=lockfs\nbaseurl=%[1]s/repository/rpm\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=%[1]s/repository/lockfs.asc\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, text, r.url), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(r.writeAptRepository(filepath.Join(dir, "apt")), r.writeRPMRepository(filepath.Join(dir, "rpm")))
}

func (r *release) writeAptRepository(dir string) error {
	conf := r.extra("apt/conf")
	if err := os.MkdirAll(conf, 0o755); err != nil {
		return err
	}
	distribution := fmt.Sprintf("Origin: lockfs\nLabel: lockfs\nCodename: stable\nArchitectures: %s\nComponents: main\nSignWith: %s\n",
		strings.Join(r.archs, " "), r.key)
	if err := os.WriteFile(filepath.Join(conf, "distributions"), []byte(distribution), 0o644); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(r.out, "*.deb"))
	if err != nil {
		return err
	}
	args := []string{"--silent", "--confdir", conf, "--dbdir", r.extra("apt/db"), "--outdir", dir, "includedeb", "stable"}
	_, err = output("reprepro", append(args, packages...)...)
	return err
}

// writeRPMRepository signs copies of the packages, because dnf checks each package, and then the list of
// them.
func (r *release) writeRPMRepository(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(r.out, "*.rpm"))
	if err != nil {
		return err
	}
	gpg, err := exec.LookPath("gpg") // the default of rpm is another path on Debian
	if err != nil {
		return err
	}
	sign := []string{"--addsign", "--define", "_gpg_name " + r.key, "--define", "__gpg " + gpg}
	for _, path := range packages {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		signed := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(signed, content, 0o644); err != nil {
			return err
		}
		sign = append(sign, signed)
	}
	if _, err := output("rpmsign", sign...); err != nil {
		return err
	}
	if _, err := output("createrepo_c", "--quiet", "--revision", fmt.Sprint(r.date.Unix()), "--set-timestamp-to-revision", dir); err != nil {
		return err
	}
	_, err = output("gpg", "--batch", "--yes", "--armor", "--local-user", r.key, "--detach-sign", filepath.Join(dir, "repodata/repomd.xml"))
	return err
}
