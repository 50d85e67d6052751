package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	strict "sigs.k8s.io/yaml"
)

// readManifests reads a file as Kubernetes does, where a field that it does not know is an error. It has one document of each kind.
func readManifests(t *testing.T, file string, kinds map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../lockfs/internal/manual/kubernetes", file))
	require.NoError(t, err)
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
}

// TestTheJobMakesTheDataOfTheFirstServer: the claim and the settings are those of the first pod of the StatefulSet, and no other manifest
// makes a cluster.
func TestTheJobMakesTheDataOfTheFirstServer(t *testing.T) {
	var servers appsv1.StatefulSet
	others := map[string]any{
		"StatefulSet": &servers, "DaemonSet": new(appsv1.DaemonSet), "Service": new(corev1.Service), "PodDisruptionBudget": new(policyv1.PodDisruptionBudget),
	}
	readManifests(t, "lockfs.yaml", others)
	var claim corev1.PersistentVolumeClaim
	var job batchv1.Job
	readManifests(t, "init.yaml", map[string]any{"PersistentVolumeClaim": &claim, "Job": &job})

	template := servers.Spec.VolumeClaimTemplates[0]
	first := servers.Name + "-0"
	require.Equal(t, template.Name+"-"+first, claim.Name)
	require.Equal(t, template.Spec, claim.Spec)
	pod, server := job.Spec.Template.Spec, servers.Spec.Template.Spec.Containers[0]
	init := pod.Containers[0]
	require.Equal(t, claim.Name, pod.Volumes[0].PersistentVolumeClaim.ClaimName)
	require.Equal(t, server.Image, init.Image)
	require.Equal(t, []string{"server", "init"}, init.Args)
	require.Equal(t, []string{"server"}, server.Args)
	variables := map[string]corev1.EnvVar{}
	for _, variable := range server.Env {
		variables[variable.Name] = variable
	}
	for _, variable := range init.Env {
		if variable.Name == "LOCKFS_NAME" {
			require.Equal(t, first, variable.Value)
			continue
		}
		require.Equal(t, variables[variable.Name], variable)
	}
	require.Subset(t, server.VolumeMounts, init.VolumeMounts)
	require.Equal(t, server.SecurityContext, init.SecurityContext)
	require.NotEqual(t, servers.Spec.Selector.MatchLabels, job.Spec.Template.Labels, "the service does not find it")
}

func TestManifests(t *testing.T) {
	var servers appsv1.StatefulSet
	var mounts appsv1.DaemonSet
	var service corev1.Service
	var disruption policyv1.PodDisruptionBudget
	readManifests(t, "lockfs.yaml", map[string]any{"StatefulSet": &servers, "DaemonSet": &mounts, "Service": &service, "PodDisruptionBudget": &disruption})

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
