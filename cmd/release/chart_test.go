package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	texttemplate "text/template"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	strict "sigs.k8s.io/yaml"
)

// chartFunctions are the functions of Helm that the chart calls.
var chartFunctions = texttemplate.FuncMap{
	"default": func(value, given string) string {
		if given == "" {
			return value
		}
		return given
	},
}

// render renders the templates of the chart as helm install does.
func render(t *testing.T, version string, change func(values map[string]any)) map[string][]map[string]any {
	t.Helper()
	files, err := (&release{version: version}).chart()
	require.NoError(t, err)
	values, chart := map[string]any{}, map[string]any{}
	require.NoError(t, strict.Unmarshal([]byte(files["values.yaml"]), &values))
	require.NoError(t, strict.Unmarshal([]byte(files["Chart.yaml"]), &chart))
	require.Equal(t, "v2", chart["apiVersion"])
	change(values)
	data := map[string]any{
		"Values": values, "Chart": map[string]any{"AppVersion": chart["appVersion"]},
		"Release": map[string]any{"Name": "locks", "Namespace": "default"},
	}
	rendered := make(map[string][]map[string]any)
	for path, text := range files {
		name, is := strings.CutPrefix(path, "templates/")
		if !is {
			continue
		}
		parsed, err := texttemplate.New(name).Option("missingkey=error").Funcs(chartFunctions).Parse(text)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, parsed.Execute(&out, data))
		if strings.HasSuffix(name, ".yaml") {
			rendered[name] = documents(t, out.Bytes())
		}
	}
	return rendered
}

func documents(t *testing.T, text []byte) (all []map[string]any) {
	t.Helper()
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document map[string]any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, document)
	}
}

// TestTheChartHasTheManifests of the manual, with its own values; annotations tell Helm to create the data of the first server once.
func TestTheChartHasTheManifests(t *testing.T) {
	rendered := render(t, "VERSION", func(map[string]any) {})
	require.Len(t, rendered, 2)
	for name, chart := range rendered {
		text, err := os.ReadFile(filepath.Join(manifests, name))
		require.NoError(t, err)
		if name == "init.yaml" {
			for _, document := range chart {
				metadata := document["metadata"].(map[string]any)
				require.Equal(t, "pre-install", metadata["annotations"].(map[string]any)["helm.sh/hook"])
				delete(metadata, "annotations")
			}
		}
		require.Equal(t, documents(t, text), chart, name)
	}
}

func TestTheChartHasValues(t *testing.T) {
	rendered := render(t, "1.2.3", func(values map[string]any) {
		values["servers"], values["storage"] = 3, "9Gi"
		values["image"] = map[string]any{"repository": "registry/lockfs", "tag": ""}
	})
	text, err := yaml.Marshal(rendered)
	require.NoError(t, err)
	require.Contains(t, string(text), "replicas: 3\n")
	require.Equal(t, 2, strings.Count(string(text), "storage: 9Gi\n"))
	require.Equal(t, 3, strings.Count(string(text), "image: registry/lockfs:1.2.3\n"))
}

// TestAPlaceThatIsMissing: a change of the manifests does not silently drop a value.
func TestAPlaceThatIsMissing(t *testing.T) {
	_, err := template("image: other", variables...)
	require.ErrorContains(t, err, "image: lockfs:VERSION")
}
