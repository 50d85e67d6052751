package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const summary = "A directory on every host of a cluster in which a lock is a file"

const description = `A directory on every host of a cluster in which a lock is a file.
What is created there exclusively on one host exists on all of them, so programs
written for one machine exclude each other across hosts. Make this host one of a
cluster with "lockfs up".`

// writePackages writes the packages for an architecture.
func (r *release) writePackages(arch string) error {
	for kind, packager := range map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM} {
		info, err := r.info(kind, arch)
		if err != nil {
			return err
		}
		info.Target = filepath.Join(r.out, packager.ConventionalFileName(info))
		var made bytes.Buffer
		if err := packager.Package(info, &made); err != nil {
			return fmt.Errorf("%s for %s: %w", kind, arch, err)
		}
		if err := os.WriteFile(info.Target, made.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) info(kind, arch string) (*nfpm.Info, error) {
	contents, err := r.contents(kind, arch)
	if err != nil {
		return nil, err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "lockfs", Version: r.version, Arch: arch, Platform: "linux", MTime: r.date,
		Section: "admin", Priority: "optional", Maintainer: r.maintainer, License: "MIT", Description: description,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022,
			Scripts: nfpm.Scripts{PostInstall: "scripts/installed.sh", PreRemove: "scripts/removing.sh", PostRemove: "scripts/removed.sh"},
			RPM:     nfpm.RPM{BuildHost: "localhost", Summary: summary},
		},
	})
	if kind == "deb" {
		info.Recommends = []string{"fuse3"} // for users other than root
	}
	return info, nfpm.PrepareForPackager(info, kind)
}

// contents returns the files of a package. The mount point is not among them, because an installation must
// never touch an active mount.
func (r *release) contents(kind, arch string) (files.Contents, error) {
	zsh := map[string]string{"deb": "/usr/share/zsh/vendor-completions/_lockfs", "rpm": "/usr/share/zsh/site-functions/_lockfs"}
	all := files.Contents{
		r.file(r.program(arch), "/usr/bin/lockfs", 0o755),
		link("../bin/lockfs", "/usr/sbin/mount.lockfs"),
		link("../bin/lockfs", "/usr/sbin/mount.fuse.lockfs"),
		r.file(r.extra("units/lockfs-server.service"), "/usr/lib/systemd/system/lockfs-server.service", 0o644),
		r.file(r.extra("units/lockfs-mount.service"), "/usr/lib/systemd/system/lockfs-mount.service", 0o644),
		r.file(r.extra("bash"), "/usr/share/bash-completion/completions/lockfs", 0o644),
		r.file(r.extra("zsh"), zsh[kind], 0o644),
		r.file(r.extra("fish"), "/usr/share/fish/vendor_completions.d/lockfs.fish", 0o644),
		r.file("../../LICENSE", "/usr/share/doc/lockfs/copyright", 0o644),
	}
	settings := r.file(r.extra("units/lockfs.env"), "/etc/lockfs/lockfs.env", 0o600)
	settings.Type = files.TypeConfigNoReplace
	all = append(all, settings)
	changelog, err := r.compressed("../../CHANGELOG.md", r.extra("changelog.gz"))
	if err != nil {
		return nil, err
	}
	all = append(all, r.file(changelog, "/usr/share/doc/lockfs/changelog.gz", 0o644))
	pages, err := filepath.Glob(r.extra("man/man?/*.[17]"))
	if err != nil || len(pages) == 0 {
		return nil, errors.Join(err, errors.New("there are no man pages"))
	}
	for _, page := range pages {
		packed, err := r.compressed(page, page+".gz")
		if err != nil {
			return nil, err
		}
		section := filepath.Base(filepath.Dir(page))
		all = append(all, r.file(packed, "/usr/share/man/"+section+"/"+filepath.Base(packed), 0o644))
	}
	return all, nil
}

func (r *release) extra(name string) string { return filepath.Join(r.extras, name) }

func (r *release) file(from, to string, mode os.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root", MTime: r.date}}
}

func link(to, path string) *files.Content {
	return &files.Content{Source: to, Destination: path, Type: files.TypeSymlink}
}

// compressed compresses a file, without its name and time in the header.
func (r *release) compressed(from, to string) (string, error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(text); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return to, os.WriteFile(to, packed.Bytes(), 0o644)
}
