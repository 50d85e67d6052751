package manual

import (
	_ "embed"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Kubernetes has the manifests, with VERSION in the place of the image's version.
//
//go:embed kubernetes/lockfs.yaml
var Kubernetes string

// KubernetesInit has the manifest of the Job for the data of the first server, likewise.
//
//go:embed kubernetes/init.yaml
var KubernetesInit string

func kubernetesCommand(version string) *cobra.Command {
	first := false
	cmd := &cobra.Command{
		Use: "kubernetes", Short: "Print manifests for Kubernetes: servers, and a mount on each node", Args: cobra.NoArgs,
		Long: `Print manifests for Kubernetes: a StatefulSet of servers, and a DaemonSet that
mounts the cluster on each node. With --init, print the Job that bootstraps the
cluster; apply it once, before the others. For the steps and for mounts in pods,
see lockfs help containers.`,
		Example: "  lockfs docs kubernetes > lockfs.yaml\n  lockfs docs kubernetes --init | kubectl apply -f -",
		RunE: func(cmd *cobra.Command, _ []string) error {
			manifests := Kubernetes
			if first {
				manifests = KubernetesInit
			}
			_, err := io.WriteString(cmd.OutOrStdout(), strings.ReplaceAll(manifests, "VERSION", version))
			return err
		},
	}
	cmd.Flags().BoolVar(&first, "init", false, "print the Job that creates a new cluster")
	return cmd
}
