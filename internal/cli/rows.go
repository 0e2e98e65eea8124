package cli

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func cellValue(v any, databaseType string) any {
	switch v := v.(type) {
	case []byte:
		if strings.HasPrefix(databaseType, "JSON") && json.Valid(v) {
			return json.RawMessage(v)
		}
		if utf8.Valid(v) {
			return string(v)
		}
		return `\x` + hex.EncodeToString(v)
	case string:
		switch {
		case databaseType == "NUMERIC" && json.Valid([]byte(v)): // NaN is not
			return json.Number(v) // exact, whatever its size
		case strings.HasPrefix(databaseType, "JSON") && json.Valid([]byte(v)):
			return json.RawMessage(v)
		}
		return v
	case int64:
		if scaled, ok := withScale(v, databaseType); ok {
			return scaled
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v) // JSON has no such number
		}
		if scaled, ok := withScale(v, databaseType); ok {
			return scaled
		}
		return json.Number(row.FloatText(v))
	case time.Time:
		if databaseType == "DATE" {
			return v.Format(time.DateOnly)
		}
		return v.UTC().Format(time.RFC3339Nano)
	}
	return v
}

// SQLite stores decimal(12,2) without trailing zeros.
func withScale(v any, declared string) (json.Number, bool) {
	scale, ok := sqlvalue.DeclaredScale(declared)
	if !ok {
		return "", false
	}
	d, err := sqlvalue.Fit(&row.Field{Kind: row.DecimalKind, Scale: &scale}, v)
	return json.Number(d.String()), err == nil
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, int32, int16, int, float64, float32, json.Number:
		return true
	}
	return false
}

func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case json.RawMessage:
		return string(v)
	}
	return fmt.Sprint(v)
}

func (c serverCommands) printRows(ctx context.Context, r *sqlResult) error {
	if len(r.columns) == 0 {
		if c.env.format == formatJSON {
			return c.env.printJSON(map[string]int64{"changed": r.changed})
		}
		return c.env.print(humanize.Plural(int(r.changed), "row") + " changed\n")
	}
	if r.more {
		c.env.log.WarnContext(ctx, fmt.Sprintf("only the first %s are printed: --limit 0 prints all", humanize.Plural(len(r.rows), "row")))
	}
	if c.env.format == formatJSON {
		data, err := r.json()
		if err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		return c.env.print(string(data))
	}
	columns, rows := make([]column, len(r.columns)), make([][]string, len(r.rows))
	for i, name := range r.columns {
		columns[i] = column{title: name, right: r.numeric[i]}
	}
	for i, values := range r.rows {
		for _, v := range values {
			rows[i] = append(rows[i], cellText(v))
		}
	}
	return c.env.print(renderTable(columns, rows))
}

func (r *sqlResult) json() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("[")
	for i, values := range r.rows {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  {")
		for j, v := range values {
			name, err := json.Marshal(r.columns[j])
			if err != nil {
				return nil, err
			}
			value, err := json.Marshal(v)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", r.columns[j], err)
			}
			if j > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s: %s", name, value)
		}
		b.WriteString("}")
	}
	b.WriteString("\n]\n")
	return b.Bytes(), nil
}
