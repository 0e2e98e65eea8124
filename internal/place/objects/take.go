package objects

import (
	"fmt"
	"hash/crc32"
	"io"

	"github.com/surfin-batch/surfin/internal/place"
)

// Take has the store copy large objects. Others, and the first one if it has bytes to skip, pass through this process,
// which compares them with their names.
func (p *part) Take(from place.Marked, skip int64, head uint32) error {
	old, err := p.in.part(p.ctx, from.Path, from.Part)
	if err != nil {
		return err
	}
	if err := old.load(from.Size, from.Sum); err != nil {
		return err
	}
	for _, one := range old.pieces {
		if one.size <= skip {
			skip -= one.size
			head ^= joined(one.sum, 0, skip)
			continue
		}
		if old.store == p.store && skip == 0 && len(p.unsent) == 0 && one.size >= mergeBytes {
			one.start = p.size
			err = p.compose([]piece{one})
		} else {
			err = p.takePiece(old, one, skip, head)
		}
		if err != nil {
			return err
		}
		skip, head = 0, 0
	}
	return p.mergeLarge(p.ctx)
}

// takePiece sends large blocks of a large object, also at its end.
func (p *part) takePiece(old *part, one piece, skip int64, head uint32) error {
	body := (&file{ctx: p.ctx, store: old.store, object: one.object}).From(0)
	defer body.Close() //nolint:errcheck // it is only read
	first := make([]byte, skip)
	if _, err := io.ReadFull(body, first); err != nil {
		return err
	}
	sum := crc32.Checksum(first, castagnoli())
	if sum != head {
		return otherContent(one)
	}
	for left := one.size - skip; left > 0; {
		size := left
		if left >= 2*mergeBytes {
			size = mergeBytes
		}
		block := make([]byte, size)
		if _, err := io.ReadFull(body, block); err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli(), block)
		if left -= size; left == 0 && sum != one.sum {
			return otherContent(one)
		}
		if _, err := p.Write(block); err != nil {
			return err
		}
	}
	return nil
}

func otherContent(one piece) error {
	return &place.ContentError{Difference: fmt.Sprintf("object %s has another content than its name says", one.object.Key)}
}
