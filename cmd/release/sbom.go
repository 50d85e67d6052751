package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM lists the components of a program, as its build information has them: Go and the linked modules.
func (r *release) writeSBOM(arch string) error {
	info, err := buildinfo.ReadFile(r.program(arch))
	if err != nil {
		return err
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.date.Format(time.RFC3339),
		Component: &cyclonedx.Component{BOMRef: "lockfs", Type: cyclonedx.ComponentTypeApplication, Name: "lockfs", Version: r.version},
	}
	components := []cyclonedx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, library(module.Path, module.Version))
	}
	bom.Components = &components
	file, err := os.Create(r.program(arch) + ".cdx.json")
	if err != nil {
		return err
	}
	if err := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return file.Close()
}

func library(module, version string) cyclonedx.Component {
	url := fmt.Sprintf("pkg:golang/%s@%s", module, version)
	return cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: module, Version: version, PackageURL: url}
}

// writeSums writes SHA256SUMS for all files of the release, as sha256sum --check reads it.
func (r *release) writeSums() error {
	var sums strings.Builder
	err := fs.WalkDir(os.DirFS(r.out), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(r.out, path))
		sum := sha256.Sum256(content)
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum[:]), path)
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
