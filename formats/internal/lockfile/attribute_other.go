//go:build !linux

package lockfile

import "os"

// Attribute is always empty: this system has no lockfs.
func Attribute(_, _ string) string { return "" }

// AttributeOf is always empty.
func AttributeOf(*os.File, string) string { return "" }

func attribute(_, _ string) (string, error) { return "", nil }

func descriptor(*os.File) string { return "" }

func tokenOf(*os.File) (string, error) { return "", nil }

func kindOf(string) (int64, error) { return 0, nil }

func inodeOf(*os.File) (uint64, error) { return 0, nil }

func kindOfFile(*os.File) (int64, error) { return 0, nil }
