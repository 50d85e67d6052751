package manual

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"
)

// AlertRules are rules for Prometheus.
//
//go:embed monitoring/alerts.yml
var AlertRules string

// Dashboard is a dashboard for Grafana.
//
//go:embed monitoring/dashboard.json
var Dashboard string

// monitoringCommands returns the commands that print the embedded files.
func monitoringCommands() []*cobra.Command {
	printing := func(name, short, example, text string) *cobra.Command {
		return &cobra.Command{
			Use: name, Short: short, Example: example, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := io.WriteString(cmd.OutOrStdout(), text)
				return err
			},
		}
	}
	return []*cobra.Command{
		printing("alerts", "Print alert rules for Prometheus", "  lockfs docs alerts > /etc/prometheus/rules/lockfs.yml", AlertRules),
		printing("dashboard", "Print a dashboard for Grafana", "  lockfs docs dashboard > lockfs.json", Dashboard),
	}
}
