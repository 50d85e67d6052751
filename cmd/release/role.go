package main

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed ansible
var roleFiles embed.FS

// writeRole writes the Ansible role as an archive for ansible-galaxy.
func (r *release) writeRole() error {
	files := make(map[string]string)
	err := fs.WalkDir(roleFiles, "ansible", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := roleFiles.ReadFile(path)
		files[strings.TrimPrefix(path, "ansible/")] = string(content)
		return err
	})
	if err != nil {
		return err
	}
	return r.writeArchive(fmt.Sprintf("lockfs-ansible-%s.tar.gz", r.version), "lockfs", files)
}
