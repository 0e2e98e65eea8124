package query

import "github.com/jackc/pgx/v5/pgtype"

// IsPadded reports whether a field, by its number in the schema, comes from a column of type char(n), which
// ignores trailing blanks. It may be called after Open.
func (r *Reader) IsPadded(field int) bool {
	return field < len(r.columns) && r.columns[field].oid == pgtype.BPCharOID
}
