package itemextra

import "github.com/surfin-batch/surfin/pkg/batch/core/item"

// Field is a field of an item's text, with its range there in bytes.
type Field struct {
	Name, Text string
	From, To   int
}

// Splitter is implemented by the configs of readers of columns. SplitRaw splits the text of an item as
// the reader does, without its file. Missing fields are empty, at the end of the text.
type Splitter interface {
	SplitRaw(raw item.RawText) ([]Field, error)
}
