package chunk

import "github.com/surfin-batch/surfin/pkg/batch/core"

// ParseMark takes the position of a chunk step apart, or the mark of a skipped
// item, which has the same form: outcomes is the number of reader outcomes (items
// and failed reads) behind the reader's own position, which is nil where it has
// none.
func ParseMark(at core.Position) (reader core.Position, outcomes int64, err error) {
	p, err := parsePosition(at)
	if err != nil {
		return nil, 0, err
	}
	return stored(p.Reader), p.Items, nil
}

// FromStart is the position at which a chunk step reads from the start of its
// input, while its writers go on where they were: for a reader that hands out
// what is left to do. Without a position there is none.
func FromStart(at core.Position) (core.Position, error) {
	p, err := parsePosition(at)
	if err != nil || len(p.Writers) == 0 {
		return nil, err
	}
	return position{Writers: p.Writers}.encode()
}
