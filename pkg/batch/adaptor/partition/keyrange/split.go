package keyrange

type keyRange struct{ Min, Max int64 }

// split makes ascending ranges of almost equal width, without gap or overlap: parts of them, or as many as
// there are integers. low must not exceed high, and parts must be positive.
func split(low, high int64, parts int) []keyRange {
	span := uint64(high) - uint64(low) // one less than the number of integers, which may be 2^64
	n := uint64(parts)
	if span < n {
		n = span + 1
	}
	// n*width + wider is the number of integers; wider of the ranges have one more.
	width, wider := span/n, span%n+1
	if wider == n {
		wider = 0
		width++ // 0 means 2^64, where n is 1
	}
	ranges := make([]keyRange, n)
	at := uint64(low)
	for i := range ranges {
		last := at + width - 1
		if uint64(i) < wider {
			last++
		}
		ranges[i] = keyRange{Min: int64(at), Max: int64(last)}
		at = last + 1
	}
	return ranges
}
