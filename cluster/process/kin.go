package process

// FindKin is [Find] for the family of the calling thread's process: it is ErrUnknown unless the pid means that
// process itself, an ancestor or a descendant of it. Any other number that happens to be a pid is no evidence that
// the caller meant a process by it. Nor is 1, but for the caller itself: that is everybody's ancestor.
func FindKin(caller, pid int) (ID, error) {
	id, err := Find(caller, pid)
	if err != nil {
		return ID{}, err
	}
	own, err := statOf(caller)
	switch {
	case err != nil:
		return ID{}, err
	case id == own.ID:
		return id, nil
	case pid == 1:
		return ID{}, ErrUnknown
	}
	if own.descendsFrom(id) {
		return id, nil
	}
	of, err := readStat(id.PID, id.PID)
	if err != nil {
		return ID{}, err
	}
	if of.ID != id || !of.descendsFrom(own.ID) {
		return ID{}, ErrUnknown
	}
	return id, nil
}

func (s stat) descendsFrom(ancestor ID) bool {
	for relative := range s.lineage() {
		if relative.ID == ancestor {
			return relative.ID != s.ID
		}
	}
	return false
}
