package row

import "encoding/binary"

// AppendKey appends a map key, equal for equal values only, also in sequence. Not for storage.
func AppendKey(dst []byte, v Value) []byte {
	v = v.Canonical()
	dst = append(dst, byte(v.kind))
	at := len(dst)
	dst = v.AppendText(append(dst, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4)) //nolint:gosec // a value is shorter than 4 GB
	return dst
}
