package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/daemon"
	"lockfs/cmd/lockfs/internal/manual"
)

// description is what a metric says of itself.
type description struct {
	help   string
	labels string // by comma, as the manual has them
}

var (
	describedAs = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]*)".*variableLabels: \{([^}]*)\}`)
	metricName  = regexp.MustCompile(`\blockfs_[a-z0-9_]+`)
)

// servedMetrics are all that a server with a mount can serve, by name.
func servedMetrics(t testing.TB) map[string]description {
	t.Helper()
	metrics := cluster.NewMetrics()
	metrics.Registry.MustRegister(daemon.CertificateCollector{Dir: t.TempDir()})
	node, err := cluster.Open(cluster.Config{
		Name: "a", DataDir: filepath.Join(t.TempDir(), "data"), Bootstrap: true, Logger: slog.New(slog.DiscardHandler), Metrics: metrics,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	descs := make(chan *prometheus.Desc)
	go func() {
		metrics.Registry.Describe(descs)
		close(descs)
	}()
	served := map[string]description{}
	for desc := range descs {
		parts := describedAs.FindStringSubmatch(desc.String())
		require.NotNil(t, parts, desc.String())
		if strings.HasPrefix(parts[1], "lockfs_") {
			served[parts[1]] = description{parts[2], strings.ReplaceAll(parts[3], ",", ", ")}
		}
	}
	return served
}

// TestTheManualHasAllMetrics with the words that they are served with.
func TestTheManualHasAllMetrics(t *testing.T) {
	served := servedMetrics(t)
	chapter, found := manual.Find("metrics")
	require.True(t, found)
	text := strings.Join(strings.Fields(chapter.Source), " ")
	for name, d := range served {
		entry := fmt.Sprintf("- `%s`: %s", name, d.help)
		if d.labels != "" {
			entry = fmt.Sprintf("- `%s` (%s): %s", name, d.labels, d.help)
		}
		require.Contains(t, text, entry)
	}
	for _, name := range metricName.FindAllString(chapter.Source, -1) {
		require.Contains(t, served, name, "what the manual tells of is served")
	}
	for name := range served {
		require.NotRegexp(t, `_(count|sum|bucket|info_total)$`, name, "as Prometheus has names")
	}
}

// requireServed requires that every metric in an expression is served.
func requireServed(t testing.TB, served map[string]description, expression string) {
	t.Helper()
	names := metricName.FindAllString(expression, -1)
	require.NotEmpty(t, names, expression)
	for _, name := range names {
		_, is := served[name]
		of, isPart := cutSuffixes(name, "_bucket", "_sum", "_count")
		_, isOf := served[of]
		require.True(t, is || isPart && isOf, "%s in %s", name, expression)
	}
	for _, pair := range []string{"()", "{}", "[]"} {
		require.Equal(t, strings.Count(expression, pair[:1]), strings.Count(expression, pair[1:]), expression)
	}
}

func cutSuffixes(name string, suffixes ...string) (string, bool) {
	for _, suffix := range suffixes {
		if of, found := strings.CutSuffix(name, suffix); found {
			return of, true
		}
	}
	return name, false
}

func TestAlertRules(t *testing.T) {
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert       string
				Expr        string
				For         string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(manual.AlertRules))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&rules))
	served := servedMetrics(t)
	var names []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			requireServed(t, served, rule.Expr)
			require.NotContains(t, names, rule.Alert)
			require.Contains(t, []string{"critical", "warning", "info"}, rule.Labels["severity"], rule.Alert)
			require.NotEmpty(t, rule.For, rule.Alert)
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["description"], rule.Alert)
			requireSection(t, rule.Alert, rule.Annotations["manual"])
			names = append(names, rule.Alert)
		}
	}
	for _, name := range []string{
		"LockfsNoLeader", "LockfsMajorityAtRisk", "LockfsSlowDisk", "LockfsClockSpread", "LockfsCertificateExpires",
		"LockfsDiskNearlyFull", "LockfsSilentHosts", "LockfsLongQueues", "LockfsAlarm", "LockfsNoBackups",
	} {
		require.True(t, slices.Contains(names, name), name)
	}
}

var manualLink = regexp.MustCompile(`^lockfs help (\S+), "(.+)"$`)

// requireSection requires that the manual has the section of an alert.
func requireSection(t testing.TB, alert, link string) {
	t.Helper()
	parts := manualLink.FindStringSubmatch(link)
	require.NotNil(t, parts, "%s: %q", alert, link)
	chapter, found := manual.Find(parts[1])
	require.True(t, found, "%s: %s", alert, link)
	require.Contains(t, chapter.Source, "\n## "+parts[2]+"\n", alert)
}

func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(manual.Dashboard), &dashboard))
	served := servedMetrics(t)
	ids, places := map[int]bool{}, map[[2]int]bool{}
	for _, panel := range dashboard.Panels {
		place := [2]int{panel.GridPos.X, panel.GridPos.Y}
		require.False(t, ids[panel.ID] || places[place], "%s is in nobody's place", panel.Title)
		ids[panel.ID], places[place] = true, true
		require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		require.Equal(t, panel.Type == "row", len(panel.Targets) == 0, panel.Title)
		for _, target := range panel.Targets {
			require.Contains(t, target.Expr, `job="$job"`)
			if !strings.Contains(target.Expr, "process_") { // of the Go client, on every process
				requireServed(t, served, target.Expr)
			}
		}
	}
}
