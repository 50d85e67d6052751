// Package checksum computes the checksums of everything on disk.
package checksum

import "hash/crc32"

// Size is the length of a checksum in bytes.
const Size = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of returns the CRC-32C of data.
func Of(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }
