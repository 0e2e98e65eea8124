package jsontext

import (
	"bytes"
	"fmt"
	"hash/maphash"
)

const maxLinearKeys = 16

type keySet struct {
	s     *Scanner
	first int
	many  *table // for more than a few keys
}

func (k *keySet) add(key []byte, offset int) error {
	keys := k.s.keys[k.first:]
	twice := false
	if k.many == nil && len(keys) < maxLinearKeys {
		for _, old := range keys {
			if len(old) == len(key) && bytes.Equal(old, key) {
				twice = true
			}
		}
	} else {
		if k.many == nil {
			k.many = k.s.table()
			for i := range keys {
				k.many.add(keys[:i], keys[i])
			}
		}
		twice = !k.many.add(keys, key)
	}
	if twice {
		return &StrictError{Offset: offset, Msg: fmt.Sprintf("the key %q is there twice", key)}
	}
	k.s.keys = append(k.s.keys, key)
	return nil
}

func (k *keySet) forget() {
	k.s.keys = k.s.keys[:k.first]
	if k.many != nil {
		k.s.tables = append(k.s.tables, k.many)
		k.many = nil
	}
}

// table: a map would copy each key.
type table struct {
	seed  maphash.Seed
	slots []int32 // 0 is free; otherwise 1 + the key's number
}

const maxTableSlots = 1 << 12

func (s *Scanner) table() *table {
	if n := len(s.tables); n > 0 {
		t := s.tables[n-1]
		s.tables = s.tables[:n-1]
		if len(t.slots) <= maxTableSlots {
			clear(t.slots)
			return t
		}
	}
	return &table{seed: maphash.MakeSeed(), slots: make([]int32, 8*maxLinearKeys)}
}

func (t *table) add(keys [][]byte, key []byte) bool {
	if 2*len(keys) >= len(t.slots) {
		t.slots = make([]int32, 2*len(t.slots))
		for i, old := range keys {
			t.slots[t.find(keys[:i], old)] = int32(i + 1)
		}
	}
	at := t.find(keys, key)
	if t.slots[at] != 0 {
		return false
	}
	t.slots[at] = int32(len(keys) + 1)
	return true
}

func (t *table) find(keys [][]byte, key []byte) int {
	mask := len(t.slots) - 1
	for at := int(maphash.Bytes(t.seed, key)) & mask; ; at = (at + 1) & mask {
		if k := t.slots[at]; k == 0 || bytes.Equal(keys[k-1], key) {
			return at
		}
	}
}
