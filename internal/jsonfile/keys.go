package jsonfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// A key in no object of the file is an error, like a missing column of a csv file: nothing is
// written then (rule D9).
func (r *Reader) findKeys(ctx context.Context) error {
	start := r.at
	missing, sample, err := r.unseen(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return r.missingKeys(missing, sample)
	}
	if r.in.Holds(start.Offset) {
		r.goTo(start)
		return nil
	}
	if r.path == core.StdPath {
		return errors.New("keys of the items are missing in the first documents, and the standard input cannot be read again to find them: set optional: true for fields that may be missing, or write the input to a file first")
	}
	if err := r.in.Close(); err != nil {
		return err
	}
	return r.begin(ctx)
}

// Without an object, or if the file cannot be read to its end, it returns none: the reading will
// report it.
func (r *Reader) unseen(ctx context.Context) (missing []int, sample []byte, err error) {
	for i := range r.keys.Names {
		missing = append(missing, i)
	}
	for len(missing) > 0 {
		doc, err := r.next(ctx)
		switch {
		case item.IsConsumed(err):
			continue
		case errors.Is(err, io.EOF) && sample != nil:
			return missing, sample, nil
		case err != nil:
			return nil, nil, ctx.Err()
		}
		find := r.keys.Finder
		var stray *jsontext.PathError
		if err := find.Find(doc); err != nil && !errors.As(err, &stray) || !bytes.HasPrefix(doc, []byte("{")) {
			continue // an invalid item, which is read later
		}
		if sample == nil {
			sample = bytes.Clone(doc)
		}
		missing = slices.DeleteFunc(missing, func(i int) bool { return find.Found[i] != nil })
	}
	return nil, nil, nil
}

func (r *Reader) missingKeys(missing []int, sample []byte) error {
	names := keysOf(sample)
	var errs []error
	for _, i := range missing {
		hint := ""
		if near := nearest.Name(r.keys.Names[i], names); near != "" {
			hint = fmt.Sprintf("nearest: %q; ", near)
		}
		errs = append(errs, fmt.Errorf("%s: no object has the key %q for field %s (%sa field whose key may be missing is optional)",
			r.path, r.keys.Names[i], r.keys.Fields[i], hint))
	}
	return errors.Join(errs...)
}

func keysOf(object []byte) (names []string) {
	var top any
	if err := json.Unmarshal(object, &top); err != nil {
		return nil
	}
	var walk func(prefix string, value any)
	walk = func(prefix string, value any) {
		const maxNames = 200
		members, ok := value.(map[string]any)
		if !ok {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(members)) {
			if len(names) == maxNames {
				return
			}
			names = append(names, prefix+key)
			walk(prefix+key+".", members[key])
		}
	}
	walk("", top)
	return names
}
