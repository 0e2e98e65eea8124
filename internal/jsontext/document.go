package jsontext

import (
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/fault"
)

// WantedKeys are the targets of a finder, and the names of its fields in messages.
type WantedKeys struct {
	Finder *Finder
	Fields []string // by the number of Finder.Found
	Names  []string // key or path of each
}

// Add adds a field of a name.
func (k *WantedKeys) Add(field, name string) {
	k.Finder.AddName(name)
	k.Fields, k.Names = append(k.Fields, field), append(k.Names, name)
}

// UnknownKeyError reports a key of a document that the item type does not have.
type UnknownKeyError struct{ Path string }

// Error states the possible solutions.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("the key %q is not in the item type: add a field for it, or set unknown: ignore or warn", e.Path)
}

// BadDocument describes the error in a document that is not JSON, not strict, or blocks a path.
func BadDocument(doc []byte, err error) error {
	var strict *StrictError
	var syntax *SyntaxError
	var stray *PathError
	switch {
	case errors.As(err, &stray):
		return err
	case errors.As(err, &strict):
		return fault.At(fault.Place{From: strict.Offset, To: strict.Offset + 1}, fmt.Errorf("%w: %s", err, Shorten(doc)))
	case errors.As(err, &syntax):
		return fault.At(fault.Place{From: syntax.Offset, To: syntax.Offset + 1}, fmt.Errorf("not JSON: %w (byte %d): %s", err, syntax.Offset+1, Shorten(doc)))
	}
	return fmt.Errorf("not JSON: %w: %s", err, Shorten(doc))
}
