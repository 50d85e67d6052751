package main

import (
	"fmt"

	"lockfs/test/mutants"
)

// readDescribed returns the description of each patch.
func readDescribed(root string) (map[string]string, error) {
	patches, err := mutants.Read(root, mutants.Faults)
	if err != nil {
		return nil, err
	}
	described := make(map[string]string)
	for _, p := range patches {
		described[p.Name] = p.What
	}
	return described, nil
}

// checkListed returns an error unless each patch has a test in list.go, and each entry a patch.
func checkListed(described map[string]string) error {
	listed := make(map[string]bool)
	for _, m := range all {
		if described[m.name] == "" {
			return fmt.Errorf("test/mutants/faults has no patch %s", m.name)
		}
		listed[m.name] = true
	}
	for name := range described {
		if !listed[name] {
			return fmt.Errorf("no test has to see the mistake %s: name its tests in test/mutants/check/list.go", name)
		}
	}
	return nil
}
