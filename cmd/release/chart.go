package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed chart
var chartFiles embed.FS

// manifests has the manifests of the manual, from which the templates of the chart are made.
const manifests = "../lockfs/internal/manual/kubernetes"

// variable is a place in a manifest with a value of the chart.
type variable struct{ manifest, template string }

var variables = []variable{
	{"image: lockfs:VERSION", `image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"`},
	{"storage: 4Gi", "storage: {{ .Values.storage }}"},
}

// replicas is the place of the number of servers.
var replicas = variable{"\n  replicas: 1\n", "\n  replicas: {{ .Values.servers }}\n"}

// Annotations of the objects that exist before the servers, by the first line of their metadata. Helm
// creates them once. It keeps the volume claim, which has the data of the first server.
var hooks = []variable{
	{"  name: lockfs-init\n", `  name: lockfs-init
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "1", helm.sh/hook-delete-policy: hook-succeeded}
`},
	{"  name: data-lockfs-0\n", `  name: data-lockfs-0
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "0", helm.sh/resource-policy: keep}
`},
}

// template makes a template of a manifest. Each place has to be there.
func template(manifest string, places ...variable) (string, error) {
	for _, v := range places {
		if !strings.Contains(manifest, v.manifest) {
			return "", fmt.Errorf("the manifests for Kubernetes have no %q", v.manifest)
		}
		manifest = strings.ReplaceAll(manifest, v.manifest, v.template)
	}
	return manifest, nil
}

// chart returns the files of the Helm chart.
func (r *release) chart() (map[string]string, error) {
	files := map[string]string{
		"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: lockfs\ndescription: %s\ntype: application\nversion: %s\nappVersion: %q\n",
			summary, r.version, r.version),
	}
	for name, to := range map[string]string{"values.yaml": "values.yaml", "NOTES.txt": "templates/NOTES.txt"} {
		content, err := chartFiles.ReadFile("chart/" + name)
		if err != nil {
			return nil, err
		}
		files[to] = string(content)
	}
	for name, places := range map[string][]variable{
		"init.yaml": append(hooks, variables...), "lockfs.yaml": append([]variable{replicas}, variables...),
	} {
		manifest, err := os.ReadFile(filepath.Join(manifests, name))
		if err != nil {
			return nil, err
		}
		if files["templates/"+name], err = template(string(manifest), places...); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (r *release) writeChart() error {
	files, err := r.chart()
	if err != nil {
		return err
	}
	return r.writeArchive(fmt.Sprintf("lockfs-%s.tgz", r.version), "lockfs", files)
}

// writeArchive writes files below one folder as a compressed archive, in the order of their names.
func (r *release) writeArchive(name, folder string, files map[string]string) error {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(r.header(tar.TypeReg, folder+"/"+path, 0o644, len(files[path]))); err != nil {
			return err
		}
		if _, err := w.Write([]byte(files[path])); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name), packed.Bytes(), 0o644)
}
