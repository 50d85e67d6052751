package control

import "lockfs/raftstore/ids"

func (c *directory) Save() (*Saved, error) {
	open, lastHandle := c.open.All()
	saved := &Saved{Began: c.source.began, LastHandle: lastHandle}
	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	saved.LastNode = c.nodes.last
	for number, known := range c.nodes.known {
		s := saveNode(known.node)
		s.Number, s.Lookups = number, known.lookups
		saved.Nodes = append(saved.Nodes, s)
	}
	for number, handle := range open {
		s, err := saveHandle(handle)
		if err != nil {
			return nil, err
		}
		s.Number, s.BudgetUID = number, c.files.userOf(number)
		saved.Handles = append(saved.Handles, s)
	}
	return saved, nil
}

// Forgotten returns the state of a control directory after a crash: only numbers from past on are unused.
// Earlier open files are unreadable; fixed nodes keep their numbers.
func Forgotten(past uint64) *Saved {
	return &Saved{LastNode: controlBit | ids.Inode(past), LastHandle: past, Forgotten: true}
}

func (c *directory) Restore(saved *Saved) error {
	if saved.Forgotten {
		c.nodes.last = saved.LastNode
		c.open.Restore(nil, saved.LastHandle)
		return nil
	}
	c.source.began = saved.Began
	nodes := newNodeTable()
	nodes.last = saved.LastNode
	for _, s := range saved.Nodes {
		n, err := s.node()
		if err != nil {
			return err
		}
		nodes.numbers[n] = s.Number
		nodes.known[s.Number] = &knownNode{node: n, lookups: s.Lookups}
	}
	c.nodes = nodes
	// New fixed nodes of this program also keep their numbers.
	for _, n := range fixedNodes() {
		if _, known := nodes.numbers[n]; !known {
			nodes.use(n)
		}
	}
	handles := make(map[uint64]handle)
	for _, s := range saved.Handles {
		h, err := s.handle(c.source)
		if err != nil {
			return err
		}
		handles[s.Number] = h
		c.files.restored(s.Number, s.BudgetUID, h)
	}
	c.open.Restore(handles, saved.LastHandle)
	return nil
}
