package objects

import "hash/crc32"

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// joined is the CRC-32C of two texts in a row, the second of size bytes: the first is multiplied by
// x^(8 size) modulo the polynomial, by squaring.
func joined(first, second uint32, size int64) uint32 {
	var power matrix
	power[0] = crc32.Castagnoli
	for i := 1; i < len(power); i++ {
		power[i] = 1 << (i - 1)
	}
	for range 3 { // from one bit to a byte
		power = power.squared()
	}
	for ; size > 0; size >>= 1 {
		if size&1 == 1 {
			first = power.times(first)
		}
		power = power.squared()
	}
	return first ^ second
}

type matrix [32]uint32

func (m *matrix) times(vector uint32) (product uint32) {
	for i := 0; vector != 0; i, vector = i+1, vector>>1 {
		if vector&1 == 1 {
			product ^= m[i]
		}
	}
	return product
}

func (m *matrix) squared() (square matrix) {
	for i, column := range m {
		square[i] = m.times(column)
	}
	return square
}
