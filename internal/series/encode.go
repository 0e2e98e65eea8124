package series

import (
	"encoding/binary"
	"errors"
	"fmt"
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
var errCut = errors.New("it ends within a sample")

// Decode reads the stored form.
func Decode(text []byte) ([]Sample, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if text[0] != version {
		return nil, fmt.Errorf("the samples of counters have version %d, this program reads %d", text[0], version)
	}
	text = text[1:]
	var samples []Sample
	var at int64
	var values [counters]int64
	for len(text) > 0 {
		if len(samples) == Most {
			return nil, fmt.Errorf("the samples of counters are more than %d", Most)
		}
		if err := advance(&text, &at); err != nil {
			return nil, err
		}
		for i := range values {
			if err := advance(&text, &values[i]); err != nil {
				return nil, err
			}
		}
		samples = append(samples, Sample{time.Duration(at) * time.Millisecond, countersOf(values)})
	}
	return samples, nil
}

func advance(text *[]byte, value *int64) error {
	by, n := binary.Varint(*text)
	if n <= 0 {
		return fmt.Errorf("the samples of counters: %w", errCut)
	}
	*value += by
	*text = (*text)[n:]
	return nil
}

// counters is the number of counters of a sample.
const counters = 8

func valuesOf(c core.Counters) [counters]int64 {
	return [counters]int64{c.Read, c.Filter, c.Write, c.ReadSkip, c.ProcessSkip, c.WriteSkip, c.Commit, c.Rollback}
}

func countersOf(v [counters]int64) core.Counters {
	return core.Counters{Read: v[0], Filter: v[1], Write: v[2], ReadSkip: v[3], ProcessSkip: v[4], WriteSkip: v[5], Commit: v[6], Rollback: v[7]}
}
