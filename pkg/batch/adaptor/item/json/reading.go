package json

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const defaultMaxLine registry.Size = 16 << 20

const aboutReading = `

If no object of the file has a field's key, that is an error before anything is read, as a
missing column of csv is, unless the field is optional. To check that, the file is
read ahead up to the first object with the key, mostly the first one of all.

With explode, a row is also identified by its number within its element or line
(meta.row, from 1). The stored text of a row that could not be read is the element or line with
that row's element in place of the array: corrected, it is read as this one row again.
A string field takes an object or an array as its JSON text.

A plain file restarts by a seek; a compressed one is read again from its start up
to the position. A file that changed since the last attempt is refused.`

func newReader(cfg jsonfile.Config, itemType item.Type, open func(jsonfile.Config) *jsonfile.Reader) (item.Reader, error) {
	itemType, err := itemOf(itemType)
	if err == nil && cfg.Unknown != "" && cfg.Unknown != jsonfile.UnknownIgnore && itemType.GoType() != reflect.TypeFor[item.Row]() {
		err = &registry.ConfigError{Key: "unknown", Err: fmt.Errorf("it is for rows, not for %s, which encoding/json decodes", itemType.Name())}
	}
	if err == nil {
		err = checkReading(cfg.Explode, registry.Size(cfg.MaxLine))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Name, err)
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = int64(defaultMaxLine)
	}
	return itemType.FromDocuments(open(cfg))
}

func checkReading(explode string, size registry.Size) error {
	if err := jsontext.CheckName(explode); explode != "" && err != nil {
		return &registry.ConfigError{Key: "explode", Err: err}
	}
	if size < 0 {
		return &registry.ConfigError{Key: "max_line", Err: errors.New("it is negative")}
	}
	return nil
}

func checkMember(member string, compression filestream.ReadCompression) error {
	if err := filestream.CheckMember(member, compression); err != nil {
		return &registry.ConfigError{Key: "member", Err: err}
	}
	return nil
}

// The keys of an object are unknown before it is read, so an open schema has no columns.
func itemOf(itemType item.Type) (item.Type, error) {
	switch {
	case itemType == nil:
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("it is missing: JSON objects have no header that names the fields")}
	case itemType.Schema() != nil && itemType.Schema().IsOpen():
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("its fields must be named: JSON objects have no header")}
	}
	if err := item.CheckDocumentKeys(itemType); err != nil {
		return nil, &registry.ConfigError{Key: "item", Err: err}
	}
	return itemType, nil
}
