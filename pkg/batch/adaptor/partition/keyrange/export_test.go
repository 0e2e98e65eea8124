//test:plain

package keyrange

type Range = keyRange

func Split(low, high int64, parts int) []Range { return split(low, high, parts) }
