package filestream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// rangeKey is the key of a partition's context with its Range.
const rangeKey = "surfin.range"

// Range is a part of a file (rule P9).
type Range struct {
	From item.Position `json:"from"`
	// Until is the offset where the next part begins; 0 means that there is none.
	Until int64 `json:"until,omitempty"`
	// By is the Confined.By of the reader that divided the file.
	By string `json:"by"`
	// First and Last are its lines, from 1.
	First int64 `json:"-"`
	Last  int64 `json:"-"`
}

// Confined is embedded in readers that may read a part only.
type Confined struct {
	// By names the reader, with its settings that decide where records begin and end.
	By   string
	part *Range
}

// Confine implements Divider. A reader with other settings would begin within a record.
func (c *Confined) Confine(part Range) error {
	if part.By != c.By {
		return fmt.Errorf("the file was divided into parts by other settings of its reader (%s, now %s): remove the committed rows and start over (--from-start)", part.By, c.By)
	}
	c.part = &part
	return nil
}

// Whole ends the confinement.
func (c *Confined) Whole() { c.part = nil }

// Divided reports whether only a part is read.
func (c *Confined) Divided() bool { return c.part != nil }

// Ends reports whether the next record, at offset, belongs to the next part.
func (c *Confined) Ends(offset int64) bool {
	return c.part != nil && c.part.Until > 0 && offset >= c.part.Until
}

// Start returns where Open begins: at the given position, or at the start of the part.
func (c *Confined) Start(at item.Position) item.Position {
	if at == nil && c.part != nil {
		return c.part.From
	}
	return at
}

// Store stores the part in the context of its partition.
func (r *Range) Store(c *core.ExecutionContext) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return c.Put(rangeKey, string(text))
}

// Divider is implemented by readers of files that several of them can read together.
type Divider interface {
	// Divide opens the file and divides it into parts of about the same size, as many as wanted or fewer, which together
	// have the items of one reader.
	Divide(ctx context.Context, want partcount.Wanted) (path string, parts []Range, err error)
	// Confine is called before Open, which then begins at the start of the part.
	Confine(part Range) error
}

// OfReader is implemented by partitioners that ask the reader of their step. The function makes it for a part.
type OfReader interface {
	SetReader(reader func(ctx context.Context, part core.Partition) (item.Reader, error))
}

// AsDivider returns the reader's Divider, or nil.
func AsDivider(r item.Reader) Divider {
	if d, is := r.(Divider); is {
		return d
	}
	d, _ := r.Component().(Divider)
	return d
}

// Confine confines a reader to the part in the context of its partition, if there is one.
func Confine(r item.Reader, c *core.ExecutionContext) error {
	stored, has := c.Get(rangeKey)
	if !has {
		return nil
	}
	d := AsDivider(r)
	if d == nil {
		return errors.New("the file was divided into parts, which the reader of the step cannot read: start over (--from-start)")
	}
	var part Range
	if err := json.Unmarshal([]byte(fmt.Sprint(stored)), &part); err != nil {
		return fmt.Errorf("the stored part of the file is unreadable: %w", err)
	}
	return d.Confine(part)
}

// Ranges returns the parts between cuts, for a reader with Confined.By. at returns the reader's position at one.
func Ranges(cuts []Cut, by string, at func(k int, c Cut) (item.Position, error)) ([]Range, error) {
	parts := make([]Range, len(cuts)-1)
	for k := range parts {
		from, err := at(k, cuts[k])
		if err != nil {
			return nil, err
		}
		next := cuts[k+1]
		parts[k] = Range{From: from, By: by, First: cuts[k].Lines + 1, Last: max(next.Lines, cuts[k].Lines+1)}
		if k+1 < len(parts) {
			parts[k].Until = next.Offset
		}
	}
	return parts, nil
}

// CheckDivisible refuses a file whose configuration shows that it is a stream.
func CheckDivisible(path, member string, form ReadCompression) error {
	switch c := compressionOf(path, string(form)); {
	case path == core.StdPath:
		return &registry.ConfigError{Key: "path", Err: errors.New("the standard input cannot be divided into parts: it can be read only once")}
	case member != "":
		return &registry.ConfigError{Key: "member", Err: errStream(c.name)}
	case c.name != "" && c.name != compressionZip || form == compressionZip:
		return &registry.ConfigError{Key: "path", Err: errStream(c.name)}
	}
	return nil
}

func errStream(what string) error {
	return fmt.Errorf("a file that is %s cannot be divided into parts: each would decode all text before it; decode the file in a step before (tasklet files), or omit partition", what)
}
