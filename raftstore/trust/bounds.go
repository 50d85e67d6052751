package trust

// What is kept is bounded, in bytes, so that a snapshot can always be read again.
const (
	maxName        = 255
	maxTokenID     = 64
	maxCertificate = 8 << 10 // or a sealed key
	maxShare       = 512
)
