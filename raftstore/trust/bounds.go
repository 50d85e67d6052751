package trust

// Limits in bytes, which keep snapshots readable.
const (
	maxName        = 255
	maxTokenID     = 64
	maxCertificate = 8 << 10 // or a sealed key
	maxShare       = 512
)
