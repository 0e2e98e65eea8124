package runlog

import "fmt"

// maxCauses bounds the causes of an error in a log.
const maxCauses = 20

type cause struct{ text, kind string }

// chain is an error with its causes, the first one first. A cause with the text of the one before is left out.
type chain struct {
	mask   func(string) string
	seen   string
	causes []cause
}

func (c *chain) walk(err error) {
	if err == nil || len(c.causes) >= maxCauses {
		return
	}
	if text := c.mask(err.Error()); text != c.seen && text != "" {
		c.causes = append(c.causes, cause{cut(text, maxValue), fmt.Sprintf("%T", err)})
		c.seen = text
	}
	switch wrapped := err.(type) { //nolint:errorlint // each error of the chain is visited
	case interface{ Unwrap() error }:
		c.walk(wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range wrapped.Unwrap() {
			c.walk(one)
		}
	}
}
