package group

import (
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// config is the configuration of `group`.
type config struct {
	Reader    registry.Nested      `key:"reader" kind:"reader" required:"true" doc:"The reader of the rows."`
	Processor []registry.Nested    `key:"processor" kind:"processor" doc:"Processors for the rows before they are grouped, as a list, in order."`
	Key       []string             `key:"key" doc:"The fields that are equal in all rows of a group; they come first in the group's row."`
	Starts    registry.Expression  `key:"starts" doc:"A bool expression that is true for the first row of a group, instead of a key."`
	Sorted    bool                 `key:"sorted" default:"false" doc:"Whether a key that is less than the previous one fails the step, so that no key has two groups; texts are compared by their bytes."`
	MaxGroup  registry.Size        `key:"max_group" default:"1MB" doc:"How much text join and list may collect in a group; a larger one is an invalid item."`
	Fields    registry.Expressions `key:"fields" rest:"true" doc:"The other fields of the group's row: count(), sum(x), min(x), max(x), first(x), last(x), join(x, ', ') or list(x), where x is an expression over item and meta of each row."`
}

const defaultMaxGroup = 1 << 20

// Validate checks the options that need no item type.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	switch {
	case len(c.Key) == 0 && c.Starts.Text == "":
		bad("key", "which rows belong together is not set: write key: [FIELD], or starts: EXPRESSION")
	case len(c.Key) > 0 && c.Starts.Text != "":
		bad("starts", "key is set, too: remove one of the two")
	case c.Sorted && len(c.Key) == 0:
		bad("sorted", "it applies to a key, but key is not set: omit it")
	}
	for i, name := range c.Key {
		if slices.Contains(c.Key[:i], name) {
			bad("key", "field %s is listed twice", name)
		}
	}
	if c.Starts.Text != "" && len(c.Fields) == 0 {
		bad("starts", "a group's row needs a field, such as lines: list(item.line)")
	}
	if c.MaxGroup < 0 {
		bad("max_group", "it is negative")
	}
	return errors.Join(errs...)
}
