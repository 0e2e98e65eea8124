package gormtx

import (
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Few is an aggregate of a column of the first rows of a query about an outer row; the last bind variable is their number.
// A derived table of MariaDB does not see the outer row, so that MySQL reads all rows.
func Few(d tx.Dialect, aggregate, column, from, order string) string {
	if d == tx.MySQL {
		return "(SELECT " + aggregate + from + " AND ? > 0)"
	}
	return "(SELECT " + aggregate + " FROM (SELECT " + column + from + order + " LIMIT ?) AS few)"
}

// ForEach runs a query for each of some keys; {key} is the key, and relation lists them as a JSON array. For the reason
// above MySQL has one query for each.
func ForEach(d tx.Dialect, query, key, relation string, keys []string, list any, args ...any) (text string, bound []any) {
	if d != tx.MySQL {
		return strings.ReplaceAll(query, "{key}", key) + " FROM " + relation, append(args, list)
	}
	queries := make([]string, len(keys))
	for i, k := range keys {
		rest := args
		for at := range len(query) {
			switch {
			case query[at] == '?':
				bound, rest = append(bound, rest[0]), rest[1:]
			case strings.HasPrefix(query[at:], "{key}"):
				bound = append(bound, k)
			}
		}
		queries[i] = strings.ReplaceAll(query, "{key}", "?")
	}
	return strings.Join(queries, " UNION ALL "), bound
}
