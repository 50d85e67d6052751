package identity

// What is spoken over a connection (ALPN).
const (
	ProtocolRaft = "lockfs-raft" // between servers
	ProtocolRPC  = "lockfs-rpc"  // calls of hosts with a certificate
	ProtocolJoin = "lockfs-join" // of those who have none yet, or whose has expired
)
