package cluster

import "errors"

// hangUp closes the server once the node has stepped down.
func (n *Node) hangUp() {
	select {
	case <-n.stepDown.Done():
		n.stopServing()
	case <-n.ctx.Done():
	}
}

// Close stops the node. Everything it acknowledged is on disk.
func (n *Node) Close() error {
	n.cancel()
	if n.server != nil {
		n.server.Close()
		n.joinServer.Close()
	}
	var errs []error
	if n.raft != nil {
		n.cfg.Metrics.Registry.Unregister(newNodeCollector(n)) // so that this process can open another node
		errs = append(errs, n.raft.Close())
	}
	if n.port != nil {
		errs = append(errs, n.port.Close())
	}
	if n.peers != nil {
		n.peers.Close()
		n.forwarder.Close()
	}
	if n.audit != nil {
		errs = append(errs, n.audit.close())
	}
	if n.dir != nil {
		errs = append(errs, n.dir.Close())
	}
	return errors.Join(errs...)
}
