package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeImage writes one OCI image for all architectures as a file for podman load, skopeo and ctr. The root
// file system holds only the program.
func (r *release) writeImage() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range r.archs {
		image, err := r.image(arch)
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": "lockfs:" + r.version},
		}})
	}
	dir := filepath.Join(r.extras, "image")
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(r.out, fmt.Sprintf("lockfs_%s.oci.tar", r.version)))
	if err != nil {
		return err
	}
	if err := r.archive(file, os.DirFS(dir)); err != nil {
		return err
	}
	return file.Close()
}

func (r *release) image(arch string) (v1.Image, error) {
	root, err := r.root(arch)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(root)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "lockfs " + r.version},
	}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.date}
	config.Config = v1.Config{
		Entrypoint:   []string{"/usr/bin/lockfs"},
		Env:          []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		ExposedPorts: map[string]struct{}{"7420/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/lockfs": {}},
		Labels:       map[string]string{"org.opencontainers.image.title": "lockfs", "org.opencontainers.image.version": r.version},
	}
	return mutate.ConfigFile(image, config)
}

// root returns the file system of the image as an archive.
func (r *release) root(arch string) ([]byte, error) {
	program, err := os.ReadFile(r.program(arch))
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, dir := range []struct {
		name string
		mode int64
	}{
		{"etc/", 0o755}, {"etc/lockfs/", 0o755}, {"locks/", 0o755}, {"run/", 0o755}, {"tmp/", 0o1777},
		{"usr/", 0o755}, {"usr/bin/", 0o755}, {"var/", 0o755}, {"var/lib/", 0o755}, {"var/lib/lockfs/", 0o700}, {"var/log/", 0o755},
	} {
		if err := w.WriteHeader(r.header(tar.TypeDir, dir.name, dir.mode, 0)); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(r.header(tar.TypeReg, "usr/bin/lockfs", 0o755, len(program))); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	return packed.Bytes(), w.Close()
}

func (r *release) header(kind byte, name string, mode int64, size int) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: int64(size), ModTime: r.date, Format: tar.FormatUSTAR}
}

// archive writes a tree, sorted by name.
func (r *release) archive(to io.Writer, tree fs.FS) error {
	w := tar.NewWriter(to)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
			return err
		case entry.IsDir():
			return w.WriteHeader(r.header(tar.TypeDir, path+"/", 0o755, 0))
		}
		content, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(r.header(tar.TypeReg, path, 0o644, len(content))); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
