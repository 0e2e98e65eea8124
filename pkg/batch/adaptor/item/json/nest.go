package json

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// a field, or an object of members
type member struct {
	key     string
	field   int // -1 means an object
	name    string
	raw     bool
	members []*member
}

type layout struct {
	find *jsontext.Finder
	root member
	scan jsontext.Scanner
}

// newLayout returns nil if a document has the fields of the row unchanged.
func newLayout(cfg *writerConfig, in item.Type) (*layout, error) {
	if len(cfg.Keys) == 0 && len(cfg.Raw) == 0 {
		return nil, nil
	}
	if in.GoType() != reflect.TypeFor[item.Row]() || in.Schema() == nil || in.Schema().IsOpen() {
		key := "keys"
		if len(cfg.Keys) == 0 {
			key = "raw"
		}
		return nil, &registry.ConfigError{Key: key, Err: fmt.Errorf("it is for rows with known fields, not for %s", in.Name())}
	}
	schema := in.Schema()
	paths := slices.Sorted(maps.Keys(cfg.Keys))
	if len(paths) == 0 {
		paths = schema.Names()
	}
	l := &layout{find: jsontext.NewFinder(), root: member{field: -1}}
	var errs []error
	fieldOf := func(path string) string {
		if len(cfg.Keys) == 0 {
			return path
		}
		return cfg.Keys[path]
	}
	slices.SortStableFunc(paths, func(a, b string) int { return schema.Index(fieldOf(a)) - schema.Index(fieldOf(b)) })
	for _, name := range cfg.Raw {
		switch i := schema.Index(name); {
		case i < 0:
			errs = append(errs, &registry.ConfigError{Key: "raw", Err: fmt.Errorf("the item has no field %s%s", name, nearest.Hint(name, schema.Names()))})
		case schema.Field(i).Kind == row.JSONKind:
			errs = append(errs, &registry.ConfigError{Key: "raw", Err: fmt.Errorf("field %s is json, which is always written as JSON: omit it", name)})
		}
	}
	for _, path := range paths {
		name := fieldOf(path)
		i := schema.Index(name)
		if i < 0 {
			errs = append(errs, &registry.ConfigError{Key: "keys." + path, Err: fmt.Errorf("the item has no field %s%s", name, nearest.Hint(name, schema.Names()))})
			continue
		}
		keys := []string{schema.Field(i).Source()}
		if len(cfg.Keys) > 0 {
			var err error
			if keys, err = jsontext.Keys(path); err != nil {
				errs = append(errs, &registry.ConfigError{Key: "keys." + path, Err: err})
				continue
			}
		}
		m := member{field: l.find.AddPath([]jsontext.Step{{Key: schema.Field(i).Source()}}), name: name, raw: slices.Contains(cfg.Raw, name)}
		if err := l.root.put(keys, m); err != nil {
			errs = append(errs, &registry.ConfigError{Key: "keys." + path, Err: err})
		}
	}
	return l, errors.Join(errs...)
}

func (m *member) put(keys []string, of member) error {
	quoted, err := json.Marshal(keys[0])
	if err != nil {
		return err
	}
	key := string(quoted) + ":"
	at := slices.IndexFunc(m.members, func(c *member) bool { return c.key == key })
	switch {
	case at < 0 && len(keys) == 1:
		of.key = key
		m.members = append(m.members, &of)
		return nil
	case at < 0:
		m.members = append(m.members, &member{key: key, field: -1})
		return m.members[len(m.members)-1].put(keys[1:], of)
	case len(keys) == 1 || m.members[at].field >= 0:
		return fmt.Errorf("%s is defined already, as a value or as an object", keys[0])
	}
	return m.members[at].put(keys[1:], of)
}

func (l *layout) write(dst []byte, m *member) ([]byte, error) {
	if m.field >= 0 {
		return l.value(dst, m)
	}
	dst = append(dst, '{')
	for i, c := range m.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = l.write(append(dst, c.key...), c); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (l *layout) value(dst []byte, m *member) ([]byte, error) {
	value := l.find.Found[m.field]
	if !m.raw || len(value) == 0 || value[0] != '"' {
		return append(dst, value...), nil
	}
	text, err := jsontext.Unquote(value)
	if err == nil {
		err = l.scan.Valid([]byte(text))
	}
	if err != nil {
		return dst, exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("field %s is not JSON text (raw): %w", m.name, err))
	}
	return append(dst, text...), nil
}

type nesting struct {
	*jsonfile.Writer
	layout *layout
	docs   [][]byte
	buf    []byte
	ends   []int
}

// WriteDocuments implements item.DocumentWriter.
func (n *nesting) WriteDocuments(ctx context.Context, docs [][]byte) (err error) {
	n.buf, n.ends, n.docs = n.buf[:0], n.ends[:0], n.docs[:0]
	for _, doc := range docs {
		if err := n.layout.find.Find(doc); err != nil {
			return exception.InvalidItem("", exception.ClassInvalidItem, err)
		}
		if n.buf, err = n.layout.write(n.buf, &n.layout.root); err != nil {
			return err
		}
		n.ends = append(n.ends, len(n.buf))
	}
	from := 0
	for _, end := range n.ends {
		n.docs = append(n.docs, n.buf[from:end:end])
		from = end
	}
	return n.Writer.WriteDocuments(ctx, n.docs)
}

// writerConfig configures the writers.
type writerConfig struct {
	Path        string                      `key:"path" main:"true" path:"std" output:"true" required:"true" doc:"The file to write; - is the standard output. It is written as PATH.part.NAME, a name of the attempt's own, and renamed when the step is done; what was there is replaced."`
	Append      bool                        `key:"append" default:"false" doc:"Append to the existing file; without it the file is replaced. For jsonl only, since a JSON array has an end. The part begins as a copy of the file. A last line without a line end gets one."`
	Together    bool                        `key:"together" default:"false" doc:"In a partitioned step: write one file from all parts, in their order. Each part keeps PATH.part.NAME until all parts are complete; then the step joins them and publishes the file. For jsonl only. Without partitions it is refused."`
	Keys        map[string]string           `key:"keys" doc:"Maps keys to fields, and nothing else is written; address.city makes objects, in the order of the fields. Without it each field's key is its name in its source."`
	Raw         []string                    `key:"raw" doc:"Fields whose text is JSON, such as an object that was read into a string; they are written as JSON, not as a string."`
	Encoding    filestream.EncodingName     `key:"encoding" default:"utf-8" doc:"The text's encoding. A character that it lacks makes the item invalid."`
	Compression filestream.WriteCompression `key:"compression" default:"auto" doc:"Compress the file, one gzip member or zstd frame per chunk; auto goes by the suffix: .gz or .zst."`
}
