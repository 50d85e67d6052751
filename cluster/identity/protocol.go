package identity

// ALPN protocols.
const (
	ProtocolRaft = "lockfs-raft" // between servers
	ProtocolRPC  = "lockfs-rpc"  // calls of hosts with a certificate
	ProtocolJoin = "lockfs-join" // of hosts without a valid certificate
)
