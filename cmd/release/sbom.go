package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM lists Go and the modules in a program, as recorded in the program itself.
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

// writeSums writes SHA256SUMS in the form of sha256sum --check.
func (r *release) writeSums() error {
	made, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range made {
		content, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum[:]), entry.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
