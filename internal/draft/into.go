package draft

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Into gives fields the types of an existing table's columns if another type would write other
// values.
func (s *Shape) Into(ctx context.Context, db tx.Database, table string) error {
	if s.Format == formatTable {
		return nil
	}
	columns, err := columnsOf(ctx, db, table)
	if err != nil {
		return fmt.Errorf("describe the table %s: %w", table, err)
	}
	kinds := map[string]row.Kind{}
	for i := range columns {
		kinds[columns[i].name] = columns[i].kind(db.Dialect())
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if kind := kinds[f.Name]; !f.asked && (kind == row.BytesKind || kind == row.String) && f.isText(s.Format) {
			f.Type, f.Format, f.Scale, f.DecimalSeparator = kind.String(), "", nil, ""
		}
	}
	return nil
}

func (f *Field) isText(format string) bool {
	switch f.Type {
	case row.String.String(), row.DateKind.String(), row.Timestamp.String(), row.UUIDKind.String():
		return !f.Convert
	}
	return format == formatCSV
}
