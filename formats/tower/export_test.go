package tower

// Failing gives the directory with some of its system calls replaced; nil is the real one.
func (d Dir) Failing(link, rename func(oldPath, newPath string) error, remove func(path string) error) Dir {
	d.calls = calls{link: link, rename: rename, remove: remove, attribute: d.calls.attribute}
	return d
}

// Mounted gives the directory with what a mount of lockfs would say of its locks.
func (d Dir) Mounted(attribute func(path, name string) string) Dir {
	d.calls.attribute = attribute
	return d
}
