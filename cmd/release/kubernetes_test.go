package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	strict "sigs.k8s.io/yaml"
)

// TestManifests reads the manifests as Kubernetes does, where a field that it does not know is an error.
func TestManifests(t *testing.T) {
	text, err := os.ReadFile("../lockfs/internal/manual/kubernetes/lockfs.yaml")
	require.NoError(t, err)
	var servers appsv1.StatefulSet
	var mounts appsv1.DaemonSet
	var service corev1.Service
	var disruption policyv1.PodDisruptionBudget
	kinds := map[string]any{"StatefulSet": &servers, "DaemonSet": &mounts, "Service": &service, "PodDisruptionBudget": &disruption}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document map[string]any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		one, err := yaml.Marshal(document)
		require.NoError(t, err)
		kind := document["kind"].(string)
		require.Contains(t, kinds, kind)
		require.NoError(t, strict.UnmarshalStrict(one, kinds[kind]), kind)
		delete(kinds, kind)
	}
	require.Empty(t, kinds, "missing")

	// What refers to each other.
	require.Equal(t, service.Name, servers.Spec.ServiceName)
	for _, labels := range []map[string]string{service.Spec.Selector, servers.Spec.Selector.MatchLabels, disruption.Spec.Selector.MatchLabels} {
		require.Equal(t, servers.Spec.Template.Labels, labels)
	}
	require.Equal(t, mounts.Spec.Template.Labels, mounts.Spec.Selector.MatchLabels)
	for _, pod := range []corev1.PodSpec{servers.Spec.Template.Spec, mounts.Spec.Template.Spec} {
		volumes := map[string]bool{}
		for _, volume := range pod.Volumes {
			volumes[volume.Name] = true
		}
		for _, claim := range servers.Spec.VolumeClaimTemplates {
			volumes[claim.Name] = true
		}
		for _, mount := range pod.Containers[0].VolumeMounts {
			require.True(t, volumes[mount.Name], mount.Name)
		}
	}
	require.Equal(t, corev1.MountPropagationBidirectional, *mounts.Spec.Template.Spec.Containers[0].VolumeMounts[0].MountPropagation)
}
