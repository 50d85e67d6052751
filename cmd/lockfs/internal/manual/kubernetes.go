package manual

import (
	_ "embed"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Kubernetes is lockfs as Kubernetes runs it, with VERSION in place of that of the image.
//
//go:embed kubernetes/lockfs.yaml
var Kubernetes string

func kubernetesCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use: "kubernetes", Short: "Print manifests for Kubernetes: servers, and a mount on each node", Args: cobra.NoArgs,
		Long: `Print manifests for Kubernetes: a StatefulSet of servers, and a DaemonSet that mounts the locks on each node. How to begin, and
how pods use the mount, is in lockfs help containers.`,
		Example: "  lockfs docs kubernetes > lockfs.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), strings.ReplaceAll(Kubernetes, "VERSION", version))
			return err
		},
	}
}
