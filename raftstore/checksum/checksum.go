// Package checksum is what stands beside everything that is kept, so that what is read is known to be what was once written.
package checksum

import "hash/crc32"

// Size is how many bytes a checksum has.
const Size = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of answers the CRC-32C of data.
func Of(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }
