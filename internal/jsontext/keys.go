package jsontext

import (
	"bytes"
	"fmt"
	"hash/maphash"
)

const maxLinearKeys = 16

// openKeys are the keys of the open objects, outermost first. The next document reuses the memory.
type openKeys struct {
	keys [][]byte
	free []*table
}

// keySet has the keys of one object, from number first on.
type keySet struct {
	open  *openKeys
	first int
	many  *table // for more than a few keys
}

func (k *keySet) add(key []byte, offset int) error {
	keys := k.open.keys[k.first:]
	twice := false
	if k.many == nil && len(keys) < maxLinearKeys {
		for _, old := range keys {
			if len(old) == len(key) && bytes.Equal(old, key) {
				twice = true
			}
		}
	} else {
		if k.many == nil {
			k.many = k.open.table()
			for i := range keys {
				k.many.add(keys[:i], keys[i])
			}
		}
		twice = !k.many.add(keys, key)
	}
	if twice {
		return &StrictError{Offset: offset, Msg: fmt.Sprintf("the key %q is there twice", key)}
	}
	k.open.keys = append(k.open.keys, key)
	return nil
}

func (k *keySet) forget() {
	k.open.keys = k.open.keys[:k.first]
	if k.many != nil {
		k.open.free = append(k.open.free, k.many)
		k.many = nil
	}
}

// table: a map would copy each key.
type table struct {
	seed  maphash.Seed
	slots []int32 // 0 is free; otherwise 1 + the key's number
}

const maxTableSlots = 1 << 12

func (o *openKeys) table() *table {
	if n := len(o.free); n > 0 {
		t := o.free[n-1]
		o.free = o.free[:n-1]
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
