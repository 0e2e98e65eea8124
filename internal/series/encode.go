package series

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// version begins the stored form: another one is refused.
const version = 1

// Encode returns the stored form of samples: the differences between one and the next, most of them in one or two
// bytes.
func Encode(samples []Sample) []byte {
	text := make([]byte, 0, 1+16*len(samples))
	text = append(text, version)
	var at int64
	var last [counters]int64
	for _, s := range samples {
		now := s.At.Milliseconds()
		text = binary.AppendVarint(text, now-at)
		at = now
		values := valuesOf(s.Counters)
		for i, value := range values {
			text = binary.AppendVarint(text, value-last[i])
		}
		last = values
	}
	return text
}

// errCut means that the text ends within a sample.
var errCut = errors.New("the samples of counters end within a sample")

// Decode reads the stored form.
func Decode(text []byte) ([]Sample, error) { return AppendDecoded(nil, text) }

// AppendDecoded appends the samples of the stored form to a list.
func AppendDecoded(list []Sample, text []byte) ([]Sample, error) {
	if len(text) == 0 {
		return list, nil
	}
	if text[0] != version {
		return list, fmt.Errorf("the samples of counters have version %d, this program reads %d", text[0], version)
	}
	var values [1 + counters]int64 // the time, and the counters
	n, field := 0, 0
	list = slices.Grow(list, min((len(text)-1)/len(values), Most))
	for at := 1; at < len(text); {
		by, size := binary.Varint(text[at:])
		if size <= 0 {
			return list, errCut
		}
		at += size
		values[field] += by
		if field++; field < len(values) {
			continue
		}
		if n++; n > Most {
			return list, fmt.Errorf("the samples of counters are more than %d", Most)
		}
		field = 0
		list = append(list, Sample{time.Duration(values[0]) * time.Millisecond, countersOf([counters]int64(values[1:]))})
	}
	if field > 0 {
		return list, errCut
	}
	return list, nil
}

// counters is the number of counters of a sample.
const counters = 8

func valuesOf(c core.Counters) [counters]int64 {
	return [counters]int64{c.Read, c.Filter, c.Write, c.ReadSkip, c.ProcessSkip, c.WriteSkip, c.Commit, c.Rollback}
}

func countersOf(v [counters]int64) core.Counters {
	return core.Counters{Read: v[0], Filter: v[1], Write: v[2], ReadSkip: v[3], ProcessSkip: v[4], WriteSkip: v[5], Commit: v[6], Rollback: v[7]}
}
