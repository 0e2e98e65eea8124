package query

import "github.com/jackc/pgx/v5/pgtype"

// IsPadded reports whether a field, by its number in the schema, has the values of a column of type
// char(n), to which blanks at the end mean nothing. It is asked after Open.
func (r *Reader) IsPadded(field int) bool {
	return field < len(r.columns) && r.columns[field].oid == pgtype.BPCharOID
}
